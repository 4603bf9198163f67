"""What tests of captures share."""

from __future__ import annotations

import pytest

from tests.wiredump.quickly import require_quick


@pytest.fixture
def extension() -> None:
    """For tests of nothing but the extension, or of both ways beside each other."""
    require_quick()
