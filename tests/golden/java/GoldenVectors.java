import io.aeron.AeronCounters;
import io.aeron.CncFileDescriptor;
import io.aeron.ErrorCode;
import io.aeron.command.*;
import io.aeron.logbuffer.FrameDescriptor;
import io.aeron.logbuffer.LogBufferDescriptor;
import io.aeron.protocol.*;
import io.aeron.status.ChannelEndpointStatus;
import org.agrona.concurrent.UnsafeBuffer;
import org.agrona.concurrent.broadcast.BroadcastBufferDescriptor;
import org.agrona.concurrent.ringbuffer.RingBufferDescriptor;
import org.agrona.concurrent.status.CountersManager;
import org.agrona.concurrent.status.CountersReader;

import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import java.util.TreeMap;
import java.util.stream.Collectors;

/**
 * Prints, as one JSON document, what Aeron's own classes make of chosen values: the truth that the Python codecs are
 * held to. Text fields hold what Java reads back, because it writes '?' for what is not ASCII.
 */
public final class GoldenVectors
{
    private static final int ROUNDS = 40;
    private static final long[] EDGE_LONGS = {0, 1, -1, Long.MIN_VALUE, Long.MAX_VALUE, 0x0102030405060708L};
    private static final int[] EDGE_INTS = {0, 1, -1, Integer.MIN_VALUE, Integer.MAX_VALUE, 0x01020304};
    private static final String[] EDGE_TEXTS = {
        "", "a", "ab", "abc", "abcd", "aeron:ipc", "naïve – Ω", "aeron:udp?endpoint=localhost:40123|alias=\"x\\y\""};

    private final Random random = new Random(20861);
    private final UnsafeBuffer buffer = new UnsafeBuffer(new byte[4096]);
    private final List<String> records = new ArrayList<>();

    public static void main(final String[] args) throws Exception
    {
        final GoldenVectors vectors = new GoldenVectors();
        for (int round = 0; round < ROUNDS; round++)
        {
            vectors.commands();
            vectors.responses();
            vectors.frames();
        }

        final TreeMap<String, Object> document = new TreeMap<>();
        document.put("records", vectors.records);
        document.put("constants", constants());
        document.put("positions", vectors.positions());
        document.put("lengths", vectors.lengths());
        document.put("cnc", cnc());
        document.put("counters", counters());
        new PrintStream(System.out, true, StandardCharsets.UTF_8).println(json(document));
    }

    private void commands()
    {
        for (final String name : List.of("AddPublication", "AddExclusivePublication"))
        {
            final PublicationMessageFlyweight publication = new PublicationMessageFlyweight().wrap(cleared(), 0);
            correlated(publication);
            publication.streamId(anInt()).channel(aText());
            record(name, publication, publication.length(),
                "client_id", publication.clientId(),
                "correlation_id", publication.correlationId(),
                "stream_id", publication.streamId(),
                "channel", publication.channel());
        }

        final RemovePublicationFlyweight removal = new RemovePublicationFlyweight().wrap(cleared(), 0);
        correlated(removal);
        removal.registrationId(aLong());
        removal.revoke(random.nextBoolean());
        record("RemovePublication", removal, RemovePublicationFlyweight.length(),
            "client_id", removal.clientId(),
            "correlation_id", removal.correlationId(),
            "registration_id", removal.registrationId(),
            "flags", removal.revoke() ? 1 : 0);

        remove("RemoveSubscription", new RemoveSubscriptionFlyweight());
        remove("RemoveCounter", new RemoveCounterFlyweight());

        final SubscriptionMessageFlyweight subscription = new SubscriptionMessageFlyweight().wrap(cleared(), 0);
        correlated(subscription);
        subscription.registrationCorrelationId(aLong()).streamId(anInt()).channel(aText());
        record("AddSubscription", subscription, subscription.length(),
            "client_id", subscription.clientId(),
            "correlation_id", subscription.correlationId(),
            "registration_correlation_id", subscription.registrationCorrelationId(),
            "stream_id", subscription.streamId(),
            "channel", subscription.channel());

        for (final String name : List.of("ClientKeepalive", "ClientClose"))
        {
            final CorrelatedMessageFlyweight message = new CorrelatedMessageFlyweight().wrap(cleared(), 0);
            correlated(message);
            record(name, message, CorrelatedMessageFlyweight.LENGTH,
                "client_id", message.clientId(),
                "correlation_id", message.correlationId());
        }

        for (final String name :
            List.of("AddDestination", "RemoveDestination", "AddRcvDestination", "RemoveRcvDestination"))
        {
            final DestinationMessageFlyweight destination = new DestinationMessageFlyweight().wrap(cleared(), 0);
            correlated(destination);
            destination.registrationCorrelationId(aLong()).channel(aText());
            record(name, destination, destination.length(),
                "client_id", destination.clientId(),
                "correlation_id", destination.correlationId(),
                "registration_id", destination.registrationCorrelationId(),
                "channel", destination.channel());
        }

        final byte[] key = someBytes();
        final String label = aText();
        final byte[] labelBytes = label.getBytes(StandardCharsets.UTF_8);

        final CounterMessageFlyweight counter = new CounterMessageFlyweight().wrap(cleared(), 0);
        correlated(counter);
        counter.typeId(anInt()).keyBuffer(new UnsafeBuffer(key), 0, key.length)
            .labelBuffer(new UnsafeBuffer(labelBytes), 0, labelBytes.length);
        record("AddCounter", counter, counter.length(),
            "client_id", counter.clientId(),
            "correlation_id", counter.correlationId(),
            "type_id", counter.typeId(),
            "key", key,
            "label", label);

        final StaticCounterMessageFlyweight staticCounter = new StaticCounterMessageFlyweight().wrap(cleared(), 0);
        correlated(staticCounter);
        staticCounter.registrationId(aLong()).typeId(anInt()).keyBuffer(new UnsafeBuffer(key), 0, key.length)
            .labelBuffer(new UnsafeBuffer(labelBytes), 0, labelBytes.length);
        record("AddStaticCounter", staticCounter, staticCounter.length(),
            "client_id", staticCounter.clientId(),
            "correlation_id", staticCounter.correlationId(),
            "registration_id", staticCounter.registrationId(),
            "type_id", staticCounter.typeId(),
            "key", key,
            "label", label);

        final TerminateDriverFlyweight termination = new TerminateDriverFlyweight().wrap(cleared(), 0);
        correlated(termination);
        termination.tokenBuffer(new UnsafeBuffer(key), 0, key.length);
        record("TerminateDriver", termination, termination.length(),
            "client_id", termination.clientId(),
            "correlation_id", termination.correlationId(),
            "token", key);

        final RejectImageFlyweight rejection = new RejectImageFlyweight().wrap(cleared(), 0);
        final String reason = aText();
        correlated(rejection);
        rejection.imageCorrelationId(aLong()).position(aLong()).reason(reason);
        record("RejectImage", rejection, RejectImageFlyweight.computeLength(reason),
            "client_id", rejection.clientId(),
            "correlation_id", rejection.correlationId(),
            "image_correlation_id", rejection.imageCorrelationId(),
            "position", rejection.position(),
            "reason", rejection.reason());

        final DestinationByIdMessageFlyweight byId = new DestinationByIdMessageFlyweight().wrap(cleared(), 0);
        correlated(byId);
        byId.resourceRegistrationId(aLong()).destinationRegistrationId(aLong());
        record("RemoveDestinationById", byId, DestinationByIdMessageFlyweight.MESSAGE_LENGTH,
            "client_id", byId.clientId(),
            "correlation_id", byId.correlationId(),
            "resource_registration_id", byId.resourceRegistrationId(),
            "destination_registration_id", byId.destinationRegistrationId());

        final GetNextAvailableSessionIdMessageFlyweight nextSessionId =
            new GetNextAvailableSessionIdMessageFlyweight().wrap(cleared(), 0);
        correlated(nextSessionId);
        nextSessionId.streamId(anInt());
        record("GetNextAvailableSessionId", nextSessionId, GetNextAvailableSessionIdMessageFlyweight.LENGTH,
            "client_id", nextSessionId.clientId(),
            "correlation_id", nextSessionId.correlationId(),
            "stream_id", nextSessionId.streamId());
    }

    private void responses() throws Exception
    {
        final ErrorCode[] errorCodes = ErrorCode.values();

        final ErrorResponseFlyweight error = new ErrorResponseFlyweight().wrap(cleared(), 0);
        error.offendingCommandCorrelationId(aLong()).errorCode(errorCodes[random.nextInt(errorCodes.length)])
            .errorMessage(aText());
        record("ErrorResponse", error, error.length(),
            "offending_command_correlation_id", error.offendingCommandCorrelationId(),
            "error_code", error.errorCodeValue(),
            "error_message", error.errorMessage());

        final ImageBuffersReadyFlyweight image = new ImageBuffersReadyFlyweight().wrap(cleared(), 0);
        image.correlationId(aLong()).sessionId(anInt()).streamId(anInt()).subscriptionRegistrationId(aLong())
            .subscriberPositionId(anInt()).logFileName(aText()).sourceIdentity(aText());
        record("AvailableImage", image, image.length(),
            "correlation_id", image.correlationId(),
            "session_id", image.sessionId(),
            "stream_id", image.streamId(),
            "subscription_registration_id", image.subscriptionRegistrationId(),
            "subscriber_position_id", image.subscriberPositionId(),
            "log_file_name", image.logFileName(),
            "source_identity", image.sourceIdentity());

        for (final String name : List.of("PublicationReady", "ExclusivePublicationReady"))
        {
            final PublicationBuffersReadyFlyweight publication =
                new PublicationBuffersReadyFlyweight().wrap(cleared(), 0);
            publication.correlationId(aLong()).registrationId(aLong()).sessionId(anInt()).streamId(anInt())
                .publicationLimitCounterId(anInt()).channelStatusCounterId(anInt()).logFileName(aText());
            record(name, publication, publication.length(),
                "correlation_id", publication.correlationId(),
                "registration_id", publication.registrationId(),
                "session_id", publication.sessionId(),
                "stream_id", publication.streamId(),
                "position_limit_counter_id", publication.publicationLimitCounterId(),
                "channel_status_indicator_id", publication.channelStatusCounterId(),
                "log_file_name", publication.logFileName());
        }

        final OperationSucceededFlyweight success = new OperationSucceededFlyweight().wrap(cleared(), 0);
        success.correlationId(aLong());
        record("OperationSucceeded", success, OperationSucceededFlyweight.LENGTH,
            "correlation_id", success.correlationId());

        final ImageMessageFlyweight gone = new ImageMessageFlyweight().wrap(cleared(), 0);
        gone.correlationId(aLong()).subscriptionRegistrationId(aLong()).streamId(anInt()).channel(aText());
        record("UnavailableImage", gone, gone.length(),
            "correlation_id", gone.correlationId(),
            "subscription_registration_id", gone.subscriptionRegistrationId(),
            "stream_id", gone.streamId(),
            "channel", gone.channel());

        final SubscriptionReadyFlyweight subscription = new SubscriptionReadyFlyweight().wrap(cleared(), 0);
        subscription.correlationId(aLong()).channelStatusCounterId(anInt());
        record("SubscriptionReady", subscription, SubscriptionReadyFlyweight.LENGTH,
            "correlation_id", subscription.correlationId(),
            "channel_status_indicator_id", subscription.channelStatusCounterId());

        for (final String name : List.of("CounterReady", "UnavailableCounter"))
        {
            final CounterUpdateFlyweight counter = new CounterUpdateFlyweight().wrap(cleared(), 0);
            counter.correlationId(aLong()).counterId(anInt());
            record(name, counter, CounterUpdateFlyweight.LENGTH,
                "correlation_id", counter.correlationId(),
                "counter_id", counter.counterId());
        }

        final ClientTimeoutFlyweight timeout = new ClientTimeoutFlyweight().wrap(cleared(), 0);
        timeout.clientId(aLong());
        record("ClientTimeout", timeout, ClientTimeoutFlyweight.LENGTH, "client_id", timeout.clientId());

        final StaticCounterFlyweight staticCounter = new StaticCounterFlyweight().wrap(cleared(), 0);
        staticCounter.correlationId(aLong()).counterId(anInt());
        record("StaticCounter", staticCounter, StaticCounterFlyweight.LENGTH,
            "correlation_id", staticCounter.correlationId(),
            "counter_id", staticCounter.counterId());

        final byte[] address = new byte[random.nextBoolean() ? 4 : 16];
        random.nextBytes(address);
        final byte[] paddedAddress = java.util.Arrays.copyOf(address, 16);
        final InetSocketAddress source =
            new InetSocketAddress(InetAddress.getByAddress(address), random.nextInt(1 << 16));
        final PublicationErrorFrameFlyweight rejected = new PublicationErrorFrameFlyweight().wrap(cleared(), 0);
        rejected.registrationId(aLong()).destinationRegistrationId(aLong()).sessionId(anInt()).streamId(anInt())
            .receiverId(aLong()).groupTag(aLong()).sourceAddress(source)
            .errorCode(errorCodes[random.nextInt(errorCodes.length)]).errorMessage(aText());
        record("PublicationError", rejected, rejected.length(),
            "registration_id", rejected.registrationId(),
            "destination_registration_id", rejected.destinationRegistrationId(),
            "session_id", rejected.sessionId(),
            "stream_id", rejected.streamId(),
            "receiver_id", rejected.receiverId(),
            "group_tag", rejected.groupTag(),
            "address_type", 4 == address.length ? 1 : 2,
            "source_port", rejected.sourceAddress().getPort(),
            "address", paddedAddress,
            "error_code", rejected.errorCodeValue(),
            "error_message", rejected.errorMessage());

        final NextAvailableSessionIdFlyweight sessionId = new NextAvailableSessionIdFlyweight().wrap(cleared(), 0);
        sessionId.correlationId(aLong()).nextSessionId(anInt());
        record("NextAvailableSessionId", sessionId, NextAvailableSessionIdFlyweight.LENGTH,
            "correlation_id", sessionId.correlationId(),
            "next_session_id", sessionId.nextSessionId());
    }

    private void frames()
    {
        final DataHeaderFlyweight data = frame(new DataHeaderFlyweight(), anInt());
        data.termOffset(anInt()).sessionId(anInt()).streamId(anInt()).termId(anInt()).reservedValue(aLong());
        frameRecord("DataHeader", data, DataHeaderFlyweight.HEADER_LENGTH,
            "term_offset", data.termOffset(),
            "session_id", data.sessionId(),
            "stream_id", data.streamId(),
            "term_id", data.termId(),
            "reserved_value", data.reservedValue());

        final SetupFlyweight setup = frame(new SetupFlyweight(), SetupFlyweight.HEADER_LENGTH);
        setup.termOffset(anInt()).sessionId(anInt()).streamId(anInt()).initialTermId(anInt()).activeTermId(anInt())
            .termLength(anInt()).mtuLength(anInt()).ttl(anInt());
        frameRecord("Setup", setup, SetupFlyweight.HEADER_LENGTH,
            "term_offset", setup.termOffset(),
            "session_id", setup.sessionId(),
            "stream_id", setup.streamId(),
            "initial_term_id", setup.initialTermId(),
            "active_term_id", setup.activeTermId(),
            "term_length", setup.termLength(),
            "mtu", setup.mtuLength(),
            "ttl", setup.ttl());

        final NakFlyweight nak = frame(new NakFlyweight(), NakFlyweight.HEADER_LENGTH);
        nak.sessionId(anInt()).streamId(anInt()).termId(anInt()).termOffset(anInt()).length(anInt());
        frameRecord("Nak", nak, NakFlyweight.HEADER_LENGTH,
            "session_id", nak.sessionId(),
            "stream_id", nak.streamId(),
            "term_id", nak.termId(),
            "term_offset", nak.termOffset(),
            "length", nak.length());

        for (final Long groupTag : new Long[]{null, aLong()})
        {
            final StatusMessageFlyweight status = frame(new StatusMessageFlyweight(), StatusMessageFlyweight.HEADER_LENGTH);
            status.sessionId(anInt()).streamId(anInt()).consumptionTermId(anInt()).consumptionTermOffset(anInt())
                .receiverWindowLength(anInt()).receiverId(aLong()).groupTag(groupTag);
            final List<Object> fields = new ArrayList<>(List.of(
                "session_id", status.sessionId(),
                "stream_id", status.streamId(),
                "consumption_term_id", status.consumptionTermId(),
                "consumption_term_offset", status.consumptionTermOffset(),
                "receiver_window", status.receiverWindowLength(),
                "receiver_id", status.receiverId()));
            if (null != groupTag)
            {
                fields.addAll(List.of("group_tag", status.groupTag()));
            }
            frameRecord(null == groupTag ? "StatusMessage" : "TaggedStatusMessage", status, status.frameLength(),
                fields.toArray());
        }

        final ErrorFlyweight error = frame(new ErrorFlyweight(), ErrorFlyweight.HEADER_LENGTH);
        error.sessionId(anInt()).streamId(anInt()).receiverId(aLong()).groupTag(random.nextBoolean() ? aLong() : null)
            .errorCode(anInt()).errorMessage(aText());
        frameRecord("ErrorFrame", error, ErrorFlyweight.HEADER_LENGTH + error.errorMessage().length(),
            "session_id", error.sessionId(),
            "stream_id", error.streamId(),
            "receiver_id", error.receiverId(),
            "group_tag", error.groupTag(),
            "error_code", error.errorCode(),
            "error_message", error.errorMessage());

        final RttMeasurementFlyweight rtt = frame(new RttMeasurementFlyweight(), RttMeasurementFlyweight.HEADER_LENGTH);
        rtt.sessionId(anInt()).streamId(anInt()).echoTimestampNs(aLong()).receptionDelta(aLong()).receiverId(aLong());
        frameRecord("RttMeasurement", rtt, RttMeasurementFlyweight.HEADER_LENGTH,
            "session_id", rtt.sessionId(),
            "stream_id", rtt.streamId(),
            "echo_timestamp", rtt.echoTimestampNs(),
            "reception_delta", rtt.receptionDelta(),
            "receiver_id", rtt.receiverId());

        final ResponseSetupFlyweight response =
            frame(new ResponseSetupFlyweight(), ResponseSetupFlyweight.HEADER_LENGTH);
        response.sessionId(anInt()).streamId(anInt()).responseSessionId(anInt());
        frameRecord("ResponseSetup", response, ResponseSetupFlyweight.HEADER_LENGTH,
            "session_id", response.sessionId(),
            "stream_id", response.streamId(),
            "response_session_id", response.responseSessionId());

        resolution("ResolutionEntryIpv4", ResolutionEntryFlyweight.RES_TYPE_NAME_TO_IP4_MD, 4);
        resolution("ResolutionEntryIpv6", ResolutionEntryFlyweight.RES_TYPE_NAME_TO_IP6_MD, 16);
    }

    private void remove(final String name, final RemoveMessageFlyweight removal)
    {
        removal.wrap(cleared(), 0);
        correlated(removal);
        removal.registrationId(aLong());
        record(name, removal, RemoveMessageFlyweight.length(),
            "client_id", removal.clientId(),
            "correlation_id", removal.correlationId(),
            "registration_id", removal.registrationId());
    }

    private void correlated(final CorrelatedMessageFlyweight message)
    {
        message.clientId(aLong());
        message.correlationId(aLong());
    }

    private <T extends HeaderFlyweight> T frame(final T frame, final int frameLength)
    {
        frame.wrap(cleared());
        frame.frameLength(frameLength).version((short)random.nextInt(128)).flags((short)random.nextInt(256))
            .headerType(random.nextInt(1 << 15));
        return frame;
    }

    private void frameRecord(
        final String name, final HeaderFlyweight frame, final int length, final Object... fields)
    {
        final List<Object> all = new ArrayList<>(List.of(
            "frame_length", frame.frameLength(),
            "version", (int)frame.version(),
            "flags", (int)frame.flags(),
            "type", frame.headerType()));
        all.addAll(List.of(fields));
        record(name, frame, length, all.toArray());
    }

    private void resolution(final String name, final byte type, final int addressLength)
    {
        final byte[] address = new byte[addressLength];
        random.nextBytes(address);
        final String host = aText();
        final byte[] hostBytes = host.getBytes(StandardCharsets.UTF_8);

        final ResolutionEntryFlyweight entry = new ResolutionEntryFlyweight();
        entry.wrap(cleared());
        entry.resType(type).flags((short)random.nextInt(256)).udpPort(random.nextInt(1 << 16)).ageInMs(anInt())
            .putAddress(address).putName(hostBytes);
        record(name, entry, ResolutionEntryFlyweight.nameOffset(type) + 2 + hostBytes.length,
            "type", (int)entry.resType(),
            "flags", (int)entry.flags(),
            "udp_port", entry.udpPort(),
            "age_in_ms", entry.ageInMs(),
            "address", address,
            "name", host);
    }

    private List<Object> positions()
    {
        final List<Object> positions = new ArrayList<>();
        for (int i = 0; i < 200; i++)
        {
            final int termLength = LogBufferDescriptor.TERM_MIN_LENGTH << random.nextInt(15);
            final int bits = LogBufferDescriptor.positionBitsToShift(termLength);
            final int initialTermId = anInt();
            final int termId = initialTermId + random.nextInt(Integer.MAX_VALUE);
            final int termOffset = random.nextInt(termLength) & -FrameDescriptor.FRAME_ALIGNMENT;
            final long position = LogBufferDescriptor.computePosition(termId, termOffset, bits, initialTermId);
            final TreeMap<String, Object> vector = new TreeMap<>();
            vector.put("term_length", termLength);
            vector.put("bits_to_shift", bits);
            vector.put("initial_term_id", initialTermId);
            vector.put("term_id", LogBufferDescriptor.computeTermIdFromPosition(position, bits, initialTermId));
            vector.put("term_offset", termOffset);
            vector.put("partition_index", LogBufferDescriptor.indexByPosition(position, bits));
            vector.put("position", position);
            positions.add(vector);
        }
        return positions;
    }

    private List<Object> lengths()
    {
        final List<Object> lengths = new ArrayList<>();
        for (int i = 0; i < 200; i++)
        {
            final int maxPayloadLength = 32 * (1 + random.nextInt(2046));
            final int length = 0 == i % 4 ? maxPayloadLength * random.nextInt(20) : random.nextInt(1 << 20);
            final int termLength = LogBufferDescriptor.TERM_MIN_LENGTH << random.nextInt(15);
            final TreeMap<String, Object> vector = new TreeMap<>();
            vector.put("length", length);
            vector.put("max_payload_length", maxPayloadLength);
            vector.put("fragmented_length",
                LogBufferDescriptor.computeFragmentedFrameLength(length, maxPayloadLength));
            vector.put("term_length", termLength);
            vector.put("max_message_length", FrameDescriptor.computeMaxMessageLength(termLength));
            lengths.add(vector);
        }
        return lengths;
    }

    private static Object cnc()
    {
        final UnsafeBuffer metadata = new UnsafeBuffer(new byte[CncFileDescriptor.META_DATA_LENGTH]);
        CncFileDescriptor.fillMetaData(
            metadata, 1024 + 768, 4096 + 128, 8192, 2048, 5_000_000_001L, 512, -1_700_000_000_123L, 4_000_000_007L, 4096);
        CncFileDescriptor.signalCncReady(metadata);
        final TreeMap<String, Object> vector = new TreeMap<>();
        vector.put("bytes", metadata.byteArray());
        vector.put("cnc_version", CncFileDescriptor.CNC_VERSION);
        vector.put("to_driver_buffer_length", 1024 + 768);
        vector.put("to_clients_buffer_length", 4096 + 128);
        vector.put("counters_metadata_buffer_length", 8192);
        vector.put("counters_values_buffer_length", 2048);
        vector.put("error_log_buffer_length", 512);
        vector.put("client_liveness_timeout", 5_000_000_001L);
        vector.put("start_timestamp", -1_700_000_000_123L);
        vector.put("pid", 4_000_000_007L);
        vector.put("file_page_size", 4096);
        vector.put("file_length", CncFileDescriptor.computeCncFileLength(1024 + 768 + 4096 + 128 + 8192 + 2048 + 512, 32));
        return vector;
    }

    private static Object counters()
    {
        final UnsafeBuffer metadata = new UnsafeBuffer(new byte[4 * CountersReader.METADATA_LENGTH]);
        final UnsafeBuffer values = new UnsafeBuffer(new byte[4 * CountersReader.COUNTER_LENGTH]);
        final CountersManager manager = new CountersManager(metadata, values, StandardCharsets.UTF_8);

        final int plain = manager.allocate("bytes sent", 0, (key) -> key.putInt(0, 7));
        manager.setCounterValue(plain, -5);
        final int full = manager.allocate(
            "Ω".repeat(300), 20861, (key) -> key.setMemory(0, CountersReader.MAX_KEY_LENGTH, (byte)0xAB));
        manager.setCounterValue(full, Long.MAX_VALUE);
        manager.setCounterRegistrationId(full, 1001);
        manager.setCounterOwnerId(full, 1002);
        manager.setCounterReferenceId(full, 1003);
        final int freed = manager.allocate("gone", 11);
        manager.free(freed);

        final TreeMap<String, Object> vector = new TreeMap<>();
        vector.put("metadata", metadata.byteArray());
        vector.put("values", values.byteArray());
        return vector;
    }

    private static TreeMap<String, Object> constants() throws IllegalAccessException
    {
        final TreeMap<String, Object> constants = new TreeMap<>();
        for (final Class<?> type : List.of(
            AeronCounters.class,
            BroadcastBufferDescriptor.class,
            ChannelEndpointStatus.class,
            CncFileDescriptor.class,
            ControlProtocolEvents.class,
            CountersReader.class,
            DataHeaderFlyweight.class,
            FrameDescriptor.class,
            HeaderFlyweight.class,
            LogBufferDescriptor.class,
            RingBufferDescriptor.class))
        {
            final TreeMap<String, Object> values = new TreeMap<>();
            for (final Field field : type.getDeclaredFields())
            {
                final boolean isPublicConstant = Modifier.isPublic(field.getModifiers()) &&
                    Modifier.isStatic(field.getModifiers());
                if (isPublicConstant && field.get(null) instanceof Number number)
                {
                    values.put(field.getName(), number.longValue());
                }
            }
            constants.put(type.getSimpleName(), values);
        }

        final TreeMap<String, Object> errorCodes = new TreeMap<>();
        for (final ErrorCode errorCode : ErrorCode.values())
        {
            errorCodes.put(errorCode.name(), errorCode.value());
        }
        constants.put("ErrorCode", errorCodes);
        return constants;
    }

    private UnsafeBuffer cleared()
    {
        buffer.setMemory(0, buffer.capacity(), (byte)0);
        return buffer;
    }

    private long aLong()
    {
        return random.nextBoolean() ? EDGE_LONGS[random.nextInt(EDGE_LONGS.length)] : random.nextLong();
    }

    private int anInt()
    {
        return random.nextBoolean() ? EDGE_INTS[random.nextInt(EDGE_INTS.length)] : random.nextInt();
    }

    private String aText()
    {
        return random.nextBoolean() ?
            EDGE_TEXTS[random.nextInt(EDGE_TEXTS.length)] : "x".repeat(random.nextInt(300));
    }

    private byte[] someBytes()
    {
        final byte[] bytes = new byte[random.nextInt(113)];
        random.nextBytes(bytes);
        return bytes;
    }

    private void record(final String name, final Object flyweight, final int length, final Object... fields)
    {
        final TreeMap<String, Object> values = new TreeMap<>();
        for (int i = 0; i < fields.length; i += 2)
        {
            values.put((String)fields[i], fields[i + 1]);
        }
        final byte[] bytes = new byte[length];
        buffer.getBytes(0, bytes);

        final TreeMap<String, Object> vector = new TreeMap<>();
        vector.put("record", name);
        vector.put("flyweight", flyweight.getClass().getName());
        vector.put("fields", values);
        vector.put("bytes", bytes);
        records.add(json(vector));
    }

    /** Lists of strings hold JSON already; byte arrays become an object with their hexadecimal digits. */
    private static String json(final Object value)
    {
        if (value instanceof TreeMap<?, ?> map)
        {
            return map.entrySet().stream()
                .map((entry) -> quoted((String)entry.getKey()) + ":" + json(entry.getValue()))
                .collect(Collectors.joining(",", "{", "}"));
        }
        if (value instanceof List<?> list)
        {
            return list.stream()
                .map((item) -> item instanceof String text ? text : json(item))
                .collect(Collectors.joining(",\n", "[", "]"));
        }
        if (value instanceof byte[] bytes)
        {
            return "{\"hex\":" + quoted(HexFormat.of().formatHex(bytes)) + "}";
        }
        return value instanceof String text ? quoted(text) : value.toString();
    }

    private static String quoted(final String text)
    {
        return '"' + text.replace("\\", "\\\\").replace("\"", "\\\"") + '"';
    }
}
