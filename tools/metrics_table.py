"""Print the table of the instance's metrics for docs/metrics.md."""

from prometheus_client.core import CounterMetricFamily

from api.apps.metrics_families import FAMILIES

for family in FAMILIES.values():
    is_counter = family.kind is CounterMetricFamily
    name = f"pagemill_{family.name}{'_total' if is_counter else ''}"
    labels = ", ".join(f"`{label}`" for label in family.labels)
    print(f"| `{name}` | {'counter' if is_counter else 'gauge'} | {labels} | {family.help} |")
