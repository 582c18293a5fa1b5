import io.aeron.Aeron;
import io.aeron.DirectBufferVector;
import io.aeron.FragmentAssembler;
import io.aeron.Image;
import io.aeron.Publication;
import io.aeron.Subscription;
import io.aeron.logbuffer.BufferClaim;
import io.aeron.logbuffer.FragmentHandler;
import org.agrona.concurrent.BackoffIdleStrategy;
import org.agrona.concurrent.IdleStrategy;
import org.agrona.concurrent.UnsafeBuffer;

import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;

/**
 * The Java end of a verified stream: publishes it, or receives it and checks every byte and the order. Its messages are
 * those of {@code stream.py}, derived here once more, so that neither end can hide a mistake of the other.
 * <p>
 * Arguments: mode, Aeron directory, channel, stream id, lengths of the messages (comma separated), and what the mode
 * takes. Those that publish take any number of destinations, which are added to the publication: publish, exclusive (on
 * an exclusive publication), vector (each message from up to three pieces) and claim (by claims where a message fits, and
 * gives up one before each). Those that receive take the number of publishers, each with the whole stream in a session
 * of its own: subscribe, and follow (which goes on to the end of each stream and prints where that is).
 */
public final class StreamPeer
{
    private static final long TIMEOUT_NS = TimeUnit.SECONDS.toNanos(60);

    private final byte[][] messages;
    private final IdleStrategy idleStrategy = new BackoffIdleStrategy();
    private final long deadlineNs = System.nanoTime() + TIMEOUT_NS;
    private final Map<Integer, Integer> receivedBySession = new HashMap<>();
    private final Map<Integer, Image> images = new HashMap<>();
    private int received = 0;
    private String failure;

    private StreamPeer(final byte[][] messages)
    {
        this.messages = messages;
    }

    public static void main(final String[] args) throws Exception
    {
        final int[] lengths = Arrays.stream(args[4].split(",")).mapToInt(Integer::parseInt).toArray();
        final StreamPeer peer = new StreamPeer(messages(lengths));
        final String channel = args[2];
        final int streamId = Integer.parseInt(args[3]);
        int streams = 1;

        try (Aeron aeron = Aeron.connect(new Aeron.Context().aeronDirectoryName(args[1])))
        {
            switch (args[0])
            {
                case "subscribe", "follow" ->
                {
                    streams = args.length > 5 ? Integer.parseInt(args[5]) : 1;
                    try (Subscription subscription = aeron.addSubscription(channel, streamId))
                    {
                        System.out.println("subscribed");
                        peer.receive(subscription, streams * lengths.length);
                        if ("follow".equals(args[0]))
                        {
                            peer.awaitEndOfStreams();
                        }
                    }
                }

                default ->
                {
                    try (Publication publication = "exclusive".equals(args[0]) ?
                        aeron.addExclusivePublication(channel, streamId) : aeron.addPublication(channel, streamId))
                    {
                        for (int i = 5; i < args.length; i++)
                        {
                            publication.addDestination(args[i]);
                        }
                        peer.publish(publication, args[0]);
                    }
                }
            }
        }
        System.out.println("ok: " + streams * lengths.length + " messages");
    }

    private void publish(final Publication publication, final String mode)
    {
        for (final byte[] message : messages)
        {
            final UnsafeBuffer buffer = new UnsafeBuffer(message);
            if ("claim".equals(mode) && message.length <= publication.maxPayloadLength())
            {
                claim(publication, message.length).abort();
                final BufferClaim claim = claim(publication, message.length);
                claim.putBytes(buffer, 0, message.length);
                claim.commit();
            }
            else
            {
                final DirectBufferVector[] pieces = "vector".equals(mode) ? pieces(buffer) : null;
                while ((null == pieces ? publication.offer(buffer) : publication.offer(pieces)) < 0)
                {
                    waitFor("publishing", publication.position());
                }
            }
            idleStrategy.reset();
        }
    }

    /** Three pieces, or fewer where some would be empty: there are no vectors that begin at the end of their buffer. */
    private static DirectBufferVector[] pieces(final UnsafeBuffer buffer)
    {
        final int[] edges = {0, buffer.capacity() / 3, buffer.capacity() / 2, buffer.capacity()};
        return IntStream.range(0, 3)
            .filter((i) -> edges[i] < edges[i + 1])
            .mapToObj((i) -> new DirectBufferVector(buffer, edges[i], edges[i + 1] - edges[i]))
            .toArray(DirectBufferVector[]::new);
    }

    private BufferClaim claim(final Publication publication, final int length)
    {
        final BufferClaim claim = new BufferClaim();
        while (publication.tryClaim(length, claim) < 0)
        {
            waitFor("claiming", publication.position());
        }
        return claim;
    }

    private void receive(final Subscription subscription, final int expected)
    {
        final FragmentHandler assembler = new FragmentAssembler((buffer, offset, length, header) ->
        {
            final byte[] message = new byte[length];
            buffer.getBytes(offset, message);
            check(header.sessionId(), message);
            images.put(header.sessionId(), (Image)header.context());
        });

        while (received < expected && null == failure)
        {
            if (0 == subscription.poll(assembler, 10))
            {
                waitFor("receiving", received);
            }
            else
            {
                idleStrategy.reset();
            }
        }
        if (null != failure)
        {
            throw new IllegalStateException(failure);
        }
    }

    /** Remembers what is wrong: an exception of a fragment handler would go to the client's error handler. */
    private void check(final int sessionId, final byte[] message)
    {
        final int number = receivedBySession.merge(sessionId, 1, Integer::sum) - 1;
        if (null == failure && (number >= messages.length || !Arrays.equals(messages[number], message)))
        {
            failure = "message " + number + " of " + messages.length + " differs, length=" + message.length;
        }
        received++;
    }

    private void awaitEndOfStreams()
    {
        for (final Image image : images.values())
        {
            while (!image.isEndOfStream())
            {
                waitFor("awaiting the end of stream", image.position());
            }
            System.out.println("end of stream at " + image.endOfStreamPosition());
        }
    }

    private void waitFor(final String what, final long progress)
    {
        if (System.nanoTime() > deadlineNs)
        {
            throw new IllegalStateException(what + " stopped at " + progress);
        }
        idleStrategy.idle();
    }

    private static byte[][] messages(final int[] lengths) throws Exception
    {
        final int maxOffset = 4096;
        final int maxLength = Arrays.stream(lengths).max().orElse(0);
        final MessageDigest sha256 = MessageDigest.getInstance("SHA-256");
        final ByteBuffer pattern = ByteBuffer.allocate(maxOffset + maxLength + 32);
        for (long block = 0; pattern.position() < maxOffset + maxLength; block++)
        {
            pattern.put(sha256.digest(ByteBuffer.allocate(8).putLong(block).array()));
        }

        final byte[][] messages = new byte[lengths.length][];
        for (int i = 0; i < lengths.length; i++)
        {
            final int offset = i * 37 % maxOffset;
            messages[i] = Arrays.copyOfRange(pattern.array(), offset, offset + lengths[i]);
        }
        return messages;
    }
}
