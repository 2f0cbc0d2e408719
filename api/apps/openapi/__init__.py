"""The description of the API (OpenAPI 3.1), made from what the routes themselves declare and validate with."""
