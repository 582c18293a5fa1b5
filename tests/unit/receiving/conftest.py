"""Fixtures of the tests of receiving."""

from __future__ import annotations

import pytest

from aeron_async.subscription import Image, Subscription
from tests.unit.rig import ImageStream, Rig


@pytest.fixture
def subscription(rig: Rig) -> Subscription:
    return rig.add_subscription()


@pytest.fixture
def stream(rig: Rig, subscription: Subscription) -> ImageStream:
    """The only image of `subscription`."""
    return rig.add_image(subscription)


@pytest.fixture(params=["subscription", "image"])
def source(request: pytest.FixtureRequest, subscription: Subscription, stream: ImageStream) -> Subscription | Image:
    """What is read: the subscription, or its only image."""
    return {"subscription": subscription, "image": stream.image}[request.param]
