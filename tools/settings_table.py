"""Print the table of all settings for docs/settings.md."""

from common.settings import field_table

print("| key | environment | default | what it does |\n|---|---|---|---|")
for key, variable, default, description in field_table():
    print(f"| `{key}` | `{variable}` | {f'`{default}`' if default != '' else ''} | {description} |")
