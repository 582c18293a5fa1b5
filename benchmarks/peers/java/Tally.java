import java.nio.ByteOrder;
import java.util.Locale;

import org.agrona.DirectBuffer;

/** The messages that came, and the sums of their ticks' fields. */
final class Tally
{
    private final boolean ticks;
    private long messages;
    private long instrument;
    private double bid;
    private double ask;
    private long sequence;

    /**
     * @param ticks whether to read them; if not, messages are only counted.
     */
    Tally(final boolean ticks)
    {
        this.ticks = ticks;
    }

    void take(final DirectBuffer buffer, final int offset)
    {
        messages++;
        if (ticks)
        {
            instrument += buffer.getInt(offset + Tick.INSTRUMENT, ByteOrder.LITTLE_ENDIAN);
            bid += buffer.getDouble(offset + Tick.BID, ByteOrder.LITTLE_ENDIAN);
            ask += buffer.getDouble(offset + Tick.ASK, ByteOrder.LITTLE_ENDIAN);
            sequence += Tick.sequence(buffer, offset);
        }
    }

    long messages()
    {
        return messages;
    }

    /** Its members of a JSON object. */
    String json()
    {
        return String.format(
            Locale.ROOT,
            "\"messages\": %d, \"sum\": {\"instrument\": %d, \"bid\": %.2f, \"ask\": %.2f, \"sequence\": %d}",
            messages, instrument, bid, ask, sequence);
    }
}
