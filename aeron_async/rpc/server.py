"""The server's end: requests in, each answered on the response stream of the dialler that it came from."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import anyio

from aeron_async._log import log
from aeron_async._readable import Readable
from aeron_async._reader import Handles
from aeron_async._tasks import BackgroundTask, spawn
from aeron_async.channel import ChannelUri
from aeron_async.client import Client
from aeron_async.errors import AeronError
from aeron_async.protocol.records import MalformedRecord
from aeron_async.protocol.rpc_frames import HEADER_LENGTH, FrameKind, decode_header, encode_header
from aeron_async.publication import BytesLike, ExclusivePublication
from aeron_async.rpc.route import Route, added
from aeron_async.subscription import Image, Subscription

Handler = Callable[[bytes], Awaitable[BytesLike]]

# How long an answer may wait for its dialler, in seconds, before the server gives that dialler up.
_REPLY_TIMEOUT = 5.0

# With so many answers waiting for it, a dialler's further requests stay in its stream.
_MAX_UNSENT = 64

# The longest text of an error frame, in bytes.
_MAX_ERROR_LENGTH = 4096


@asynccontextmanager
async def serve(
    client: Client,
    channel: str | ChannelUri,
    stream_id: int,
    handler: Handler,
    *,
    response_channel: str | ChannelUri | None = None,
    response_stream_id: int | None = None,
    concurrency: int = 64,
) -> AsyncIterator[Server]:
    """Answers requests with `handler` while the context is open.

    `handler` gets the payload of a request and returns that of the reply. It runs as a task, at most `concurrency` of
    them at once; beyond that, requests wait in the stream, and in the end their callers. A handler that raises gives
    its caller a `RemoteError` with the exception's text, as does a reply that is longer than the response stream takes.

    `response_channel` has `control-mode=response`. It defaults to `aeron:ipc?control-mode=response`, or for UDP to one
    whose `control` is the endpoint of `channel` with the next port; `response_stream_id` defaults to `stream_id + 1`.
    Each dialler takes two logs of the driver, one on either channel, whose size `term-length` sets.

    A dialler that takes no reply for 5 seconds is given up: its replies are dropped, and the end of its response stream
    tells it so. Nobody else waits for it. Leaving the context cancels the handlers that run and waits for them; their
    callers get `NotConnectedError`. Cancelling that does not keep it from being done.

    Raises `ChannelError`; otherwise as `Client.add_subscription`. Source: Aeron's sample `ResponseServer`.
    """
    if concurrency < 1:
        raise ValueError(f"concurrency={concurrency} must be at least 1")
    server = Server(client, Route(channel, stream_id, response_channel, response_stream_id), handler, concurrency)
    await server._open()
    try:
        yield server
    finally:
        await server._close()


class Server:
    """Answers requests. Obtained from `serve`."""

    def __init__(self, client: Client, route: Route, handler: Handler, concurrency: int) -> None:
        self._client = client
        self._route = route
        self._handler = handler
        self._concurrency = concurrency
        self._sessions: dict[int, _Session] = {}
        self._session_tasks: list[BackgroundTask] = []
        self._handler_tasks: set[BackgroundTask] = set()
        self._handler_done = anyio.Event()
        self._requests: _Selection | None = None

    @property
    def dialler_count(self) -> int:
        """How many diallers are there now."""
        return len(self._sessions)

    @property
    def ignored_frames(self) -> int:
        """How many messages came that were no requests: too short, or of another kind or version."""
        return self._route.ignored_frames

    async def _open(self) -> None:
        client, route = self._client, self._route
        async with AsyncExitStack() as stack:
            if route.response_channel.media == "udp":
                # Holds the port of the responses while nobody dials, and shows at once where it cannot be had.
                prototype = route.response_channel.replace(response_correlation_id="prototype")
                add = partial(client.add_exclusive_publication, prototype, route.response_stream_id)
                await stack.enter_async_context(await added(add))
            stack.push_async_callback(self._wait_tasks)
            add_requests = partial(
                client.add_subscription,
                route.channel,
                route.stream_id,
                on_available_image=self._begin_session,
                on_unavailable_image=self._end_session,
            )
            subscription = await stack.enter_async_context(await added(add_requests))
            self._resources = stack.pop_all()
            self._requests = _Selection(subscription)
            self._select()
            self._task = spawn(partial(self._run, self._requests), f"aeron_async: rpc server of {route}")

    async def _close(self) -> None:
        self._task.cancel()
        with anyio.CancelScope(shield=True):
            try:
                await self._task.wait()
            finally:
                # A task that has never run has not done it.
                await self._resources.aclose()

    async def _run(self, requests: _Selection) -> None:
        try:
            # There is no next batch once the client was closed.
            while batch := await anext(requests.batches(await self._free_handlers()), None):
                for session_id, frame in zip(batch.session_ids, batch, strict=True):
                    self._take(session_id, frame)
        except AeronError as error:
            log.warning("rpc_server_stopped", error=str(error), route=str(self._route))
        finally:
            with anyio.CancelScope(shield=True):
                # Without the subscription there are no images: that ends the sessions.
                await self._resources.aclose()

    async def _wait_tasks(self) -> None:
        for task in self._handler_tasks:
            task.cancel()
        for task in (*self._handler_tasks, *self._session_tasks):
            await task.wait()

    def _begin_session(self, image: Image) -> None:
        session = _Session(self._client, self._route, image, self._select)
        self._sessions[image.session_id] = session
        self._session_tasks = [task for task in self._session_tasks if not task.done] + [session.task]

    def _end_session(self, image: Image) -> None:
        session = self._sessions.get(image.session_id)
        if session is not None and session.image is image:
            del self._sessions[image.session_id]
            session.end()
            self._select()

    def _select(self) -> None:
        """Has requests read from those diallers alone whose answers have somewhere to go."""
        if self._requests is not None:
            self._requests.select([session.image for session in self._sessions.values() if not session.is_held])

    async def _free_handlers(self) -> int:
        """How many requests may be taken, at least one."""
        while len(self._handler_tasks) >= self._concurrency:
            self._handler_done = anyio.Event()
            await self._handler_done.wait()
        return self._concurrency - len(self._handler_tasks)

    def _take(self, session_id: int, frame: bytes) -> None:
        try:
            correlation_id, kind = decode_header(frame)
        except MalformedRecord as error:
            self._route.ignore(error, session_id)
            return
        if kind is not FrameKind.REQUEST:
            self._route.ignore(f"a server gets no {kind.name}", session_id)
            return
        session = self._sessions.get(session_id)
        if session is None or session.is_over:
            return

        async def answer() -> None:
            try:
                session.send(await self._answer(correlation_id, frame[HEADER_LENGTH:]))
            except BaseException:
                session.send(_error_frame(correlation_id, "the handler was cancelled"))
                raise
            finally:
                self._handler_tasks.discard(task)
                self._handler_done.set()

        task = spawn(answer, f"aeron_async: rpc handler of {self._route}")
        self._handler_tasks.add(task)

    async def _answer(self, correlation_id: int, request: bytes) -> bytes:
        try:
            reply = await self._handler(request)
            return encode_header(correlation_id, FrameKind.REPLY) + bytes(memoryview(reply))
        except Exception as error:
            log.warning("rpc_handler_failed", exc_info=error, route=str(self._route))
            return _error_frame(correlation_id, str(error) or type(error).__name__)


class _Session:
    """One dialler as the server sees it: the publication of its answers, and the answers that wait for it.

    Its requests are held back in its stream until the publication is connected: a new IPC subscription may get once
    more what its predecessor has read, and requests that another server has answered must not be carried out again.
    """

    def __init__(self, client: Client, route: Route, image: Image, held_changed: Callable[[], None]) -> None:
        self.image = image
        self.is_held = True
        self.is_over = False
        self._client = client
        self._held_changed = held_changed
        self._unsent: deque[bytes] = deque()
        self._wake = anyio.Event()
        channel = route.response_channel.replace(response_correlation_id=image.correlation_id)
        add = partial(client.add_exclusive_publication, channel, route.response_stream_id)
        self.task = spawn(partial(self._run, add), f"aeron_async: rpc answers to session {image.session_id}")

    def send(self, frame: bytes) -> None:
        """Sends an answer now, or as soon as the dialler takes it; once the session is over it does nothing."""
        if self.is_over:
            return
        if self._unsent or self._publication.offer(_fitted(frame, self._publication)) < 0:
            self._unsent.append(frame)
            self._wake.set()
            if len(self._unsent) == _MAX_UNSENT:
                self._hold(True)

    def end(self) -> None:
        """Drops what was not sent, and closes the publication."""
        self.is_over = True
        self.task.cancel()

    async def _run(self, add: Callable[[], Awaitable[ExclusivePublication]]) -> None:
        try:
            async with await added(add) as publication:
                try:
                    await self._send_waiting(publication)
                except AeronError:
                    # Without that, the driver would wait for the dialler to read what it has.
                    publication.revoke_on_close = True
                    raise
        except AeronError as error:
            if not self._client.is_closed:
                log.warning("rpc_dialler_given_up", error=str(error), source=self.image.source_identity)
        finally:
            self.is_over = True
            self._unsent.clear()
            # Its requests are read and dropped.
            self._hold(False)

    async def _send_waiting(self, publication: ExclusivePublication) -> None:
        await publication.wait_connected(_REPLY_TIMEOUT)
        self._publication = publication
        while True:
            self._hold(False)
            await self._wake.wait()
            self._wake = anyio.Event()
            while self._unsent:
                await publication.publish(_fitted(self._unsent[0], publication), timeout=_REPLY_TIMEOUT)
                self._unsent.popleft()

    def _hold(self, is_held: bool) -> None:
        if self.is_held != is_held:
            self.is_held = is_held
            self._held_changed()


class _Selection(Readable):
    """Some of a subscription's images, to be read together."""

    def __init__(self, subscription: Subscription) -> None:
        self._subscription = subscription
        self._reader = subscription._reader
        self._handles = Handles()

    @property
    def is_closed(self) -> bool:
        return self._subscription.is_closed

    def select(self, images: Iterable[Image]) -> None:
        """Reads these images from now on."""
        self._handles = Handles([image._handle for image in images])
        self._reader.wake()


def _fitted(frame: bytes, publication: ExclusivePublication) -> bytes:
    """The frame, or the error that takes its place where it is too long."""
    if len(frame) <= publication.max_message_length:
        return frame
    correlation_id, _ = decode_header(frame)
    return _error_frame(
        correlation_id,
        f"a reply of {len(frame) - HEADER_LENGTH} bytes is too long for the response stream, which takes "
        f"{publication.max_message_length - HEADER_LENGTH}",
    )


def _error_frame(correlation_id: int, text: str) -> bytes:
    encoded = text.encode(errors="backslashreplace")[:_MAX_ERROR_LENGTH]
    # The cut may go through a character.
    return encode_header(correlation_id, FrameKind.ERROR) + encoded.decode(errors="ignore").encode()
