"""What a caller may use: the tenant's own, and the datasets that a team shares. Everything else is not there.

What only an owner may do asks for the tenant's own by `caller().tenant_id`, and does not come here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from api.apps.auth import caller
from api.apps.services import services
from api.db.services.account_service import Caller
from api.db.services.dataset_service import DatasetView
from common.errors import NotFound


def usable(dataset_id: str) -> DatasetView:
    """Raises NotFound for a dataset that is unknown, deleted, or neither the caller's nor shared with them."""
    found = usable_all([dataset_id])
    if not found:
        raise NotFound(f"You don't own the dataset {dataset_id}.")
    return found[0]


def usable_all(dataset_ids: Sequence[str]) -> list[DatasetView]:
    """Those of the datasets that the caller may use."""
    found = services().datasets.get_all(caller().tenant_id, dataset_ids)
    known = {dataset.id for dataset in found}
    others = [one for one in dataset_ids if one not in known]
    if not others:
        return found
    by_tenant: dict[str, list[str]] = {}
    for dataset_id, tenant_id in services().team.shared_datasets(caller().user_id, others).items():
        by_tenant.setdefault(tenant_id, []).append(dataset_id)
    for tenant_id, ids in by_tenant.items():
        found += services().datasets.get_all(tenant_id, ids)
    return found


def usable_documents(document_ids: Sequence[str]) -> dict[str, str]:
    """Those of the documents that the caller may use, each with its dataset."""
    found = services().documents.of_tenant(caller().tenant_id, document_ids)
    others = [one for one in document_ids if one not in found]
    if others:
        shared = services().team.shared_documents(caller().user_id, others)
        found |= {document_id: home.dataset_id for document_id, home in shared.items()}
    return found


def tenant_of_document(document_id: str) -> str:
    """Whose document it is: the caller's own tenant, unless a team shares it."""
    own = caller().tenant_id
    if services().documents.of_tenant(own, [document_id]):
        return own
    home = services().team.shared_documents(caller().user_id, [document_id]).get(document_id)
    return home.tenant_id if home else own


def tenants() -> tuple[str, ...]:
    """The caller's own, then those of their teams."""
    return (caller().tenant_id, *services().team.tenants_of(caller().user_id))


def acting_in(dataset: DatasetView) -> Caller:
    """The caller as one who adds to this dataset: what is added is its tenant's, and says by whom."""
    return replace(caller(), tenant_id=dataset.tenant_id)
