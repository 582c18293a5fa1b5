import java.nio.ByteOrder;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;

import org.agrona.BufferUtil;
import org.agrona.concurrent.UnsafeBuffer;

/** The messages that are sent: the same bytes in every client, cut from one stream of random numbers. */
final class Pool
{
    private static final int ENTRIES = 4096;
    private static final long SEED = 0x5EEDAE20L;

    /** All messages; the others start at their {@link #offset}. */
    final UnsafeBuffer buffer;
    final int size;
    private final boolean ticks;

    /**
     * @param size  of a message in bytes.
     * @param ticks whether each message gets its tick when it is to be sent; if not, each keeps the one it has now.
     */
    Pool(final int size, final boolean ticks)
    {
        buffer = randomBytes(size);
        this.size = size;
        this.ticks = ticks;
        if (!ticks)
        {
            for (int i = 0; i < ENTRIES; i++)
            {
                Tick.stamp(buffer, i * size, i);
            }
        }
    }

    /** The digest, in hexadecimal, of all messages of a size before any tick. */
    static String digest(final int size) throws NoSuchAlgorithmException
    {
        final MessageDigest digest = MessageDigest.getInstance("SHA-256");
        digest.update(randomBytes(size).byteBuffer());
        return HexFormat.of().formatHex(digest.digest());
    }

    /** Where message number {@code sequence} is, ready to be sent. */
    int offset(final long sequence)
    {
        final int offset = (int)(sequence % ENTRIES) * size;
        if (ticks)
        {
            Tick.stamp(buffer, offset, sequence);
        }
        return offset;
    }

    /** A multiple of 8 for any size. */
    private static UnsafeBuffer randomBytes(final int size)
    {
        final int length = Math.multiplyExact(ENTRIES, size);
        final UnsafeBuffer bytes = new UnsafeBuffer(BufferUtil.allocateDirectAligned(length, Long.BYTES));
        long state = SEED;
        for (int i = 0; i < length; i += Long.BYTES)
        {
            state += 0x9E3779B97F4A7C15L;
            bytes.putLong(i, mixed(state), ByteOrder.LITTLE_ENDIAN);
        }
        return bytes;
    }

    /** The end of a step of splitmix64. */
    private static long mixed(final long state)
    {
        long mixed = (state ^ (state >>> 30)) * 0xBF58476D1CE4E5B9L;
        mixed = (mixed ^ (mixed >>> 27)) * 0x94D049BB133111EBL;
        return mixed ^ (mixed >>> 31);
    }
}
