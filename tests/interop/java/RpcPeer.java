import io.aeron.Aeron;
import io.aeron.ChannelUri;
import io.aeron.ChannelUriStringBuilder;
import io.aeron.ControlledFragmentAssembler;
import io.aeron.ExclusivePublication;
import io.aeron.FragmentAssembler;
import io.aeron.Image;
import io.aeron.Publication;
import io.aeron.Subscription;
import io.aeron.logbuffer.ControlledFragmentHandler.Action;
import io.aeron.logbuffer.FragmentHandler;
import io.aeron.logbuffer.Header;
import io.aeron.response.ResponseClient;
import io.aeron.response.ResponseServer;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.BackoffIdleStrategy;
import org.agrona.concurrent.IdleStrategy;
import org.agrona.concurrent.UnsafeBuffer;

import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.TimeUnit;

/**
 * The Java end of calls over response channels, in the frames of {@code aeron_async.protocol.rpc_frames}. UDP goes through
 * Aeron's own {@code ResponseServer} and {@code ResponseClient}, which do not know IPC.
 * <p>
 * The server returns the reverse of a request, and an error with the rest of a request that begins with {@code fail:}.
 * The dialler makes many calls at once, and checks what comes back.
 * <p>
 * Arguments: serve or dial, Aeron directory, channel and stream id of requests, channel and stream id of responses.
 */
public final class RpcPeer
{
    private static final long TIMEOUT_NS = TimeUnit.SECONDS.toNanos(90);
    private static final int CALLS = 500;
    private static final int MAX_LENGTH = 5000;

    private static final int HEADER_LENGTH = 16;
    private static final byte REQUEST = 1;
    private static final byte REPLY = 2;
    private static final byte ERROR = 3;
    private static final byte VERSION = 1;
    private static final String FAIL = "fail:";

    private final Aeron aeron;
    private final String requestChannel;
    private final int requestStreamId;
    private final String responseChannel;
    private final int responseStreamId;
    private final IdleStrategy idleStrategy = new BackoffIdleStrategy();
    private final long deadlineNs = System.nanoTime() + TIMEOUT_NS;

    private RpcPeer(final Aeron aeron, final String[] args)
    {
        this.aeron = aeron;
        requestChannel = args[2];
        requestStreamId = Integer.parseInt(args[3]);
        responseChannel = args[4];
        responseStreamId = Integer.parseInt(args[5]);
    }

    public static void main(final String[] args) throws Exception
    {
        try (Aeron aeron = Aeron.connect(new Aeron.Context().aeronDirectoryName(args[1])))
        {
            final RpcPeer peer = new RpcPeer(aeron, args);
            final boolean isUdp = ChannelUri.parse(args[2]).isUdp();
            if ("serve".equals(args[0]))
            {
                System.out.println("serving");
                if (isUdp)
                {
                    peer.serveUdp();
                }
                else
                {
                    peer.serveIpc();
                }
            }
            else if (isUdp)
            {
                peer.dialUdp();
            }
            else
            {
                peer.dialIpc();
            }
        }
    }

    private void serveUdp()
    {
        try (ResponseServer server = new ResponseServer(
            aeron,
            (image) -> this::answer,
            ChannelUri.parse(requestChannel).get("endpoint"),
            requestStreamId,
            ChannelUri.parse(responseChannel).get("control"),
            responseStreamId,
            null,
            null))
        {
            while (!isOverdue())
            {
                idleStrategy.idle(server.doWork());
            }
        }
    }

    private void serveIpc()
    {
        final Map<Long, Publication> publications = new HashMap<>();
        try (Subscription requests = aeron.addSubscription(requestChannel, requestStreamId))
        {
            final ControlledFragmentAssembler assembler = new ControlledFragmentAssembler(
                (buffer, offset, length, header) ->
                {
                    final Publication responses = publications.get(((Image)header.context()).correlationId());
                    return answer(buffer, offset, length, header, responses) ? Action.CONTINUE : Action.ABORT;
                });
            while (!isOverdue())
            {
                requests.forEachImage((image) -> publications.computeIfAbsent(
                    image.correlationId(),
                    (id) -> aeron.addPublication(
                        responseChannel + "|response-correlation-id=" + id, responseStreamId)));
                idleStrategy.idle(requests.controlledPoll(assembler, 10));
            }
        }
    }

    private boolean answer(
        final DirectBuffer buffer,
        final int offset,
        final int length,
        final Header header,
        final Publication responses)
    {
        if (length < HEADER_LENGTH || REQUEST != buffer.getByte(offset + 8) || VERSION != buffer.getByte(offset + 9))
        {
            return true;
        }
        final long correlationId = buffer.getLong(offset, ByteOrder.LITTLE_ENDIAN);
        final byte[] request = new byte[length - HEADER_LENGTH];
        buffer.getBytes(offset + HEADER_LENGTH, request);
        final String text = new String(request, StandardCharsets.UTF_8);
        final UnsafeBuffer answer = text.startsWith(FAIL) ?
            frame(correlationId, ERROR, text.substring(FAIL.length()).getBytes(StandardCharsets.UTF_8)) :
            frame(correlationId, REPLY, reversed(request));
        return responses.offer(answer) > 0;
    }

    private void dialUdp()
    {
        final Calls calls = new Calls();
        final ResponseClient client = new ResponseClient(
            aeron,
            new FragmentAssembler(calls),
            ChannelUri.parse(requestChannel).get("endpoint"),
            requestStreamId,
            ChannelUri.parse(responseChannel).get("control"),
            responseStreamId);
        // That adds its publication and subscription, without which it cannot be closed.
        client.doWork();
        try (client)
        {
            while (!calls.areDone())
            {
                failIfOverdue(calls);
                int workCount = client.doWork();
                if (client.isConnected() && calls.sent < calls.count() && client.offer(calls.next()) > 0)
                {
                    calls.sent++;
                    workCount++;
                }
                idleStrategy.idle(workCount);
            }
        }
        calls.report();
    }

    private void dialIpc()
    {
        final Calls calls = new Calls();
        final FragmentHandler assembler = new FragmentAssembler(calls);
        try (Subscription responses = aeron.addSubscription(responseChannel, responseStreamId);
            ExclusivePublication requests = aeron.addExclusivePublication(
                new ChannelUriStringBuilder(requestChannel)
                    .responseCorrelationId(responses.registrationId())
                    .build(),
                requestStreamId))
        {
            while (!calls.areDone())
            {
                failIfOverdue(calls);
                int workCount = responses.poll(assembler, 10);
                if (responses.isConnected() && calls.sent < calls.count() && requests.offer(calls.next()) > 0)
                {
                    calls.sent++;
                    workCount++;
                }
                idleStrategy.idle(workCount);
            }
        }
        calls.report();
    }

    private boolean isOverdue()
    {
        return System.nanoTime() > deadlineNs;
    }

    private void failIfOverdue(final Calls calls)
    {
        if (isOverdue())
        {
            throw new IllegalStateException("sent " + calls.sent + ", answered " + calls.answered);
        }
    }

    private static UnsafeBuffer frame(final long correlationId, final byte kind, final byte[] payload)
    {
        final UnsafeBuffer frame = new UnsafeBuffer(new byte[HEADER_LENGTH + payload.length]);
        frame.putLong(0, correlationId, ByteOrder.LITTLE_ENDIAN);
        frame.putByte(8, kind);
        frame.putByte(9, VERSION);
        frame.putBytes(HEADER_LENGTH, payload);
        return frame;
    }

    private static byte[] reversed(final byte[] bytes)
    {
        final byte[] reversed = new byte[bytes.length];
        for (int i = 0; i < bytes.length; i++)
        {
            reversed[i] = bytes[bytes.length - 1 - i];
        }
        return reversed;
    }

    /** The calls of the dialler: requests of many lengths, and last one that has to fail. */
    private static final class Calls implements FragmentHandler
    {
        private static final String REASON = "größer als 5 €";

        private final byte[][] requests = new byte[CALLS + 1][];
        private final boolean[] isAnswered = new boolean[CALLS + 1];
        private int sent = 0;
        private int answered = 0;
        private String failure;

        private Calls()
        {
            final Random random = new Random(42);
            for (int i = 0; i < CALLS; i++)
            {
                requests[i] = new byte[random.nextInt(MAX_LENGTH)];
                random.nextBytes(requests[i]);
            }
            requests[CALLS] = (FAIL + REASON).getBytes(StandardCharsets.UTF_8);
        }

        private int count()
        {
            return requests.length;
        }

        private UnsafeBuffer next()
        {
            return frame(sent, REQUEST, requests[sent]);
        }

        private boolean areDone()
        {
            return null != failure || answered == requests.length;
        }

        public void onFragment(final DirectBuffer buffer, final int offset, final int length, final Header header)
        {
            final int call = (int)buffer.getLong(offset, ByteOrder.LITTLE_ENDIAN);
            final byte[] content = new byte[length - HEADER_LENGTH];
            buffer.getBytes(offset + HEADER_LENGTH, content);
            final boolean isLast = CALLS == call;
            final byte[] expected = isLast ? REASON.getBytes(StandardCharsets.UTF_8) : reversed(requests[call]);
            if (isAnswered[call] ||
                (isLast ? ERROR : REPLY) != buffer.getByte(offset + 8) ||
                VERSION != buffer.getByte(offset + 9) ||
                !Arrays.equals(expected, content))
            {
                failure = "the answer to call " + call + " is wrong or comes again, length=" + length;
            }
            isAnswered[call] = true;
            answered++;
        }

        private void report()
        {
            if (null != failure)
            {
                throw new IllegalStateException(failure);
            }
            System.out.println("ok: " + answered + " answers");
        }
    }
}
