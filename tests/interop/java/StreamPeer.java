import io.aeron.Aeron;
import io.aeron.FragmentAssembler;
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
import java.util.concurrent.TimeUnit;

/**
 * The Java end of a verified stream: publishes it, or receives it and checks every byte and the order. Its messages are
 * those of {@code stream.py}, derived here once more, so that neither end can hide a mistake of the other.
 * <p>
 * Arguments: publish, claim (which publishes by claims where a message fits, and gives up one before each) or subscribe,
 * Aeron directory, channel, stream id, lengths of the messages (comma separated), and any number of destinations that
 * are added to the publication.
 */
public final class StreamPeer
{
    private static final long TIMEOUT_NS = TimeUnit.SECONDS.toNanos(60);

    private final byte[][] messages;
    private final IdleStrategy idleStrategy = new BackoffIdleStrategy();
    private final long deadlineNs = System.nanoTime() + TIMEOUT_NS;
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

        try (Aeron aeron = Aeron.connect(new Aeron.Context().aeronDirectoryName(args[1])))
        {
            if ("subscribe".equals(args[0]))
            {
                try (Subscription subscription = aeron.addSubscription(channel, streamId))
                {
                    peer.receive(subscription);
                }
            }
            else
            {
                try (Publication publication = aeron.addPublication(channel, streamId))
                {
                    for (int i = 5; i < args.length; i++)
                    {
                        publication.addDestination(args[i]);
                    }
                    peer.publish(publication, "claim".equals(args[0]));
                }
            }
        }
        System.out.println("ok: " + lengths.length + " messages");
    }

    private void publish(final Publication publication, final boolean isByClaims)
    {
        for (final byte[] message : messages)
        {
            final UnsafeBuffer buffer = new UnsafeBuffer(message);
            if (isByClaims && message.length <= publication.maxPayloadLength())
            {
                claim(publication, message.length).abort();
                final BufferClaim claim = claim(publication, message.length);
                claim.putBytes(buffer, 0, message.length);
                claim.commit();
            }
            else
            {
                while (publication.offer(buffer) < 0)
                {
                    waitFor("publishing", publication.position());
                }
            }
            idleStrategy.reset();
        }
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

    private void receive(final Subscription subscription)
    {
        final FragmentHandler assembler = new FragmentAssembler((buffer, offset, length, header) ->
        {
            final byte[] message = new byte[length];
            buffer.getBytes(offset, message);
            check(message);
        });

        while (received < messages.length && null == failure)
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
    private void check(final byte[] message)
    {
        if (null == failure && (received >= messages.length || !Arrays.equals(messages[received], message)))
        {
            failure = "message " + received + " of " + messages.length + " differs, length=" + message.length;
        }
        received++;
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
