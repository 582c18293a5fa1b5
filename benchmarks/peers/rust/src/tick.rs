//! The tick in the first bytes of a message, and the sums of those that came.

/// Bytes of a tick.
pub const LENGTH: usize = 28;

/// Writes the tick of message `sequence` over the start of `message`.
#[inline]
pub fn stamp(message: &mut [u8], sequence: u64) {
    let bid = 100.0 + 0.25 * (sequence % 64) as f64;
    let tick = &mut message[..LENGTH];
    tick[0..4].copy_from_slice(&((sequence % 1000) as i32).to_le_bytes());
    tick[4..12].copy_from_slice(&bid.to_le_bytes());
    tick[12..20].copy_from_slice(&(bid + 0.25).to_le_bytes());
    tick[20..28].copy_from_slice(&(sequence as i64).to_le_bytes());
}

/// The sequence number in a message's tick.
#[inline]
pub fn sequence(message: &[u8]) -> u64 {
    u64::from_le_bytes(field(message, 20))
}

/// The messages that came, and the sums of their ticks' fields.
pub struct Tally {
    pub messages: u64,
    ticks: bool,
    instrument: i64,
    bid: f64,
    ask: f64,
    sequence: i64,
}

impl Tally {
    /// Reads ticks, or only counts.
    pub fn new(ticks: bool) -> Self {
        Self {
            messages: 0,
            ticks,
            instrument: 0,
            bid: 0.0,
            ask: 0.0,
            sequence: 0,
        }
    }

    #[inline]
    pub fn take(&mut self, message: &[u8]) {
        self.messages += 1;
        if self.ticks {
            self.instrument += i64::from(i32::from_le_bytes(field(message, 0)));
            self.bid += f64::from_le_bytes(field(message, 4));
            self.ask += f64::from_le_bytes(field(message, 12));
            self.sequence += i64::from_le_bytes(field(message, 20));
        }
    }

    /// Its members of a JSON object.
    pub fn json(&self) -> String {
        format!(
            r#""messages": {}, "sum": {{"instrument": {}, "bid": {:.2}, "ask": {:.2}, "sequence": {}}}"#,
            self.messages, self.instrument, self.bid, self.ask, self.sequence
        )
    }
}

/// A little-endian field of a message.
#[inline]
pub fn field<const N: usize>(message: &[u8], offset: usize) -> [u8; N] {
    message[offset..offset + N].try_into().expect("the range has N bytes")
}
