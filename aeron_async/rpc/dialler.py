"""The dialler's end: calls out, and each reply to the call that it belongs to."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial

import anyio

from aeron_async._control import CLIENT_TIMEOUT, Timeout
from aeron_async._log import log
from aeron_async._tasks import spawn
from aeron_async.channel import ChannelUri
from aeron_async.client import Client
from aeron_async.errors import (
    AeronError,
    CallTimeoutError,
    ClosedError,
    NotConnectedError,
    PublicationClosedError,
    RemoteError,
)
from aeron_async.protocol.records import MalformedRecord
from aeron_async.protocol.rpc_frames import HEADER_LENGTH, FrameKind, decode_header, encode_header
from aeron_async.publication import BytesLike, ExclusivePublication
from aeron_async.rpc.route import Route, added
from aeron_async.subscription import Image

# How often a dialler looks whether the server still takes its requests, in seconds.
_CONNECTION_CHECK = 0.1

# Back-off of a dialler whose server is lost and whose attempts fail, in seconds.
_FIRST_BACKOFF = 0.05
_LONGEST_BACKOFF = 5.0


@asynccontextmanager
async def dial(
    client: Client,
    channel: str | ChannelUri,
    stream_id: int,
    *,
    response_channel: str | ChannelUri | None = None,
    response_stream_id: int | None = None,
    timeout: Timeout = CLIENT_TIMEOUT,
) -> AsyncIterator[Remote]:
    """Connects to the server of `channel` and `stream_id`, and gives the `Remote` to call it with.

    Waits until both directions are connected, at most `timeout` seconds; None waits without limit. `response_channel`
    and `response_stream_id` are the server's, with the defaults of `serve`. Should the server go, it is dialled again
    until it is back, as long as the context is open.

    Cancelled or late, `dial` leaves nothing in the driver. Leaving the context fails the calls that are under way with
    `ClosedError`; cancelling that does not keep it from being done.

    Raises `NotConnectedError` when the time runs out, `ChannelError`; otherwise as `Client.add_subscription`. Source:
    Aeron's sample `ResponseClient`.
    """
    remote = Remote(client, Route(channel, stream_id, response_channel, response_stream_id))
    await remote._open(client._session.seconds(timeout))
    try:
        yield remote
    finally:
        await remote._close()


class Remote:
    """A server as its dialler sees it. Obtained from `dial`; it belongs to the client's loop."""

    def __init__(self, client: Client, route: Route) -> None:
        self._client = client
        self._route = route
        self._link: _Link | None = None
        self._changed = anyio.Event()
        self._is_closed = False
        self._correlation_ids = itertools.count(1)

    @property
    def is_connected(self) -> bool:
        """Whether the server is there; while it is not, calls fail at once."""
        return self._link is not None

    @property
    def pending_calls(self) -> int:
        """How many calls are under way."""
        return len(self._link.calls) if self._link is not None else 0

    @property
    def ignored_frames(self) -> int:
        """How many messages came that were no answers: too short, or of another kind or version."""
        return self._route.ignored_frames

    async def call(self, payload: BytesLike, *, timeout: Timeout = CLIENT_TIMEOUT) -> bytes:
        """Sends a request and returns the reply.

        Any number of calls may be under way; their replies come in any order. `timeout` is in seconds, for all of it;
        None waits without limit. Cancelled or late, the call is forgotten and its reply dropped, but the server may
        have got the request.

        Raises `RemoteError` with the text of what the handler raised; `CallTimeoutError`; `NotConnectedError` at once
        where the server is gone or goes, which may have got the request; `MessageTooLongError`; `ClosedError` or the
        client's reason; `TypeError` for str; `BufferError` for a strided buffer.
        """
        link = self._link
        if link is None:
            raise self._no_link()
        seconds = self._client._session.seconds(timeout)
        correlation_id = next(self._correlation_ids)
        call = link.calls[correlation_id] = _Call()
        header = encode_header(correlation_id, FrameKind.REQUEST)
        try:
            with anyio.move_on_after(seconds):
                async with link.sending:
                    await link.publication.publish_vectored((header, payload), timeout=None)
                await call.done.wait()
        except PublicationClosedError:
            raise self._no_link() from None
        finally:
            del link.calls[correlation_id]
        if not call.done.is_set():
            raise CallTimeoutError(f"no reply within {seconds} s: {self._route}")
        return call.result()

    async def wait_connected(self, timeout: Timeout = CLIENT_TIMEOUT) -> None:
        """Returns when the server is there, still or again.

        `timeout` is in seconds; None waits without limit. Raises `NotConnectedError` when it runs out, `ClosedError` or
        the client's reason.
        """
        with anyio.move_on_after(self._client._session.seconds(timeout)):
            while self._link is None and not self._is_closed:
                await self._changed.wait()
        if self._link is None:
            raise self._no_link()

    async def _open(self, seconds: float | None) -> None:
        with anyio.move_on_after(seconds):
            self._link = await self._connect(answer_timeout=None)
        if self._link is None:
            raise NotConnectedError(f"no server has answered within {seconds} s: {self._route}")
        self._task = spawn(self._run, f"aeron_async: rpc dialler of {self._route}")

    async def _close(self) -> None:
        self._task.cancel()
        with anyio.CancelScope(shield=True):
            try:
                await self._task.wait()
            finally:
                # A task that has never run has not done it.
                await self._end()

    async def _run(self) -> None:
        try:
            while self._link is not None:
                await self._link.wait_lost()
                if self._client.is_closed:
                    break
                log.warning("rpc_server_lost", route=str(self._route))
                await self._drop_link()
                self._change_link(await self._reconnect())
                log.info("rpc_server_found", route=str(self._route))
        except ClosedError:
            # The client is closed.
            pass
        finally:
            await self._end()

    async def _end(self) -> None:
        self._is_closed = True
        await self._drop_link()

    async def _drop_link(self) -> None:
        link = self._link
        self._change_link(None)
        if link is not None:
            await link.close(self._no_link)

    def _change_link(self, link: _Link | None) -> None:
        self._link = link
        changed, self._changed = self._changed, anyio.Event()
        changed.set()

    async def _reconnect(self) -> _Link:
        backoff = _FIRST_BACKOFF
        while True:
            try:
                return await self._connect(self._client._session.seconds(CLIENT_TIMEOUT))
            except ClosedError:
                raise
            except AeronError as error:
                log.warning("rpc_redial_failed", error=str(error), next_attempt_in=backoff)
            await anyio.sleep(backoff)
            backoff = min(2 * backoff, _LONGEST_BACKOFF)

    async def _connect(self, answer_timeout: float | None) -> _Link:
        """Waits for a server, and then for its response stream, at most `answer_timeout` seconds.

        A response subscription is bound to the first server that answers it. Where that goes before it is connected,
        only a new subscription will hear of the next one.
        """
        client, route = self._client, self._route
        async with AsyncExitStack() as stack:
            add_answers = partial(client.add_subscription, route.response_channel, route.response_stream_id)
            answers = await stack.enter_async_context(await added(add_answers))
            channel = route.channel.replace(response_correlation_id=answers.registration_id)
            add_requests = partial(client.add_exclusive_publication, channel, route.stream_id)
            requests = await stack.enter_async_context(await added(add_requests))
            # What the server has not read when the link is closed is nobody's call any more.
            requests.revoke_on_close = True
            await requests.wait_connected(None)
            await answers.wait_connected(answer_timeout)
            return _Link(route, requests, answers.images[0], stack.pop_all())

    def _no_link(self) -> AeronError:
        """Why a call cannot be made or finished."""
        if self._is_closed or self._client.is_closed:
            return self._client._session.closed_error(ClosedError)
        return NotConnectedError(f"the server is gone: {self._route}")


class _Link:
    """One connection to a server, and the calls under way on it; once lost, it is not used again."""

    def __init__(
        self, route: Route, publication: ExclusivePublication, image: Image, resources: AsyncExitStack
    ) -> None:
        self.publication = publication
        self.calls: dict[int, _Call] = {}
        # Only one call waits for room in the stream, the others for their turn: not all wake up whenever there is some.
        self.sending = anyio.Lock(fast_acquire=True)
        self._route = route
        self._image = image
        self._resources = resources
        self._reader = spawn(self._read, f"aeron_async: rpc answers of session {image.session_id}")

    async def wait_lost(self) -> None:
        """Returns when the server has gone, in one direction or both."""
        while self.publication.is_connected and not self._reader.done:
            with anyio.move_on_after(_CONNECTION_CHECK):
                await self._reader.wait()

    async def close(self, error: Callable[[], AeronError]) -> None:
        """Fails the calls that are under way, each with an `error` of its own, and closes the resources."""
        for call in self.calls.values():
            call.resolve(error())
        self._reader.cancel()
        with anyio.CancelScope(shield=True):
            await self._resources.aclose()
            await self._reader.wait()

    async def _read(self) -> None:
        with suppress(ClosedError):
            async for frame in self._image.payloads():
                self._take(frame)

    def _take(self, frame: bytes) -> None:
        try:
            correlation_id, kind = decode_header(frame)
        except MalformedRecord as error:
            self._route.ignore(error, self._image.session_id)
            return
        if kind is FrameKind.REQUEST:
            self._route.ignore("a dialler gets no REQUEST", self._image.session_id)
            return
        # The answer to a call that was cancelled or is overdue comes late.
        call = self.calls.get(correlation_id)
        if call is not None:
            content = frame[HEADER_LENGTH:]
            call.resolve(content if kind is FrameKind.REPLY else RemoteError(content.decode(errors="replace")))


class _Call:
    """A call under way; its first outcome counts."""

    __slots__ = ("_outcome", "done")

    def __init__(self) -> None:
        self.done = anyio.Event()
        self._outcome: bytes | AeronError = b""

    def resolve(self, outcome: bytes | AeronError) -> None:
        if not self.done.is_set():
            self._outcome = outcome
            self.done.set()

    def result(self) -> bytes:
        if isinstance(self._outcome, AeronError):
            raise self._outcome
        return self._outcome
