import java.nio.ByteOrder;

import org.agrona.DirectBuffer;
import org.agrona.MutableDirectBuffer;

/** The tick in the first bytes of a message. */
final class Tick
{
    static final int INSTRUMENT = 0;
    static final int BID = 4;
    static final int ASK = 12;
    static final int SEQUENCE = 20;
    static final int LENGTH = 28;

    private Tick()
    {
    }

    /** Writes the tick of message {@code sequence} over the start of the message at {@code offset}. */
    static void stamp(final MutableDirectBuffer buffer, final int offset, final long sequence)
    {
        final double bid = 100.0 + 0.25 * (sequence % 64);
        buffer.putInt(offset + INSTRUMENT, (int)(sequence % 1000), ByteOrder.LITTLE_ENDIAN);
        buffer.putDouble(offset + BID, bid, ByteOrder.LITTLE_ENDIAN);
        buffer.putDouble(offset + ASK, bid + 0.25, ByteOrder.LITTLE_ENDIAN);
        buffer.putLong(offset + SEQUENCE, sequence, ByteOrder.LITTLE_ENDIAN);
    }

    static long sequence(final DirectBuffer buffer, final int offset)
    {
        return buffer.getLong(offset + SEQUENCE, ByteOrder.LITTLE_ENDIAN);
    }
}
