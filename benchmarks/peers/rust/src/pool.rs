//! The messages that are sent: the same bytes in every client, cut from one stream of random numbers.

use sha2::{Digest, Sha256};

use crate::tick;

const ENTRIES: usize = 4096;
const SEED: u64 = 0x5EED_AE20;

pub struct Pool {
    bytes: Vec<u8>,
    size: usize,
    ticks: bool,
}

impl Pool {
    /// Makes messages of `size` bytes; without `ticks` they are only read from then on.
    pub fn new(size: usize, ticks: bool) -> Self {
        let bytes = splitmix64(SEED)
            .flat_map(u64::to_le_bytes)
            .take(ENTRIES * size)
            .collect();
        Self { bytes, size, ticks }
    }

    /// The digest of all messages before any tick, in hexadecimal.
    pub fn digest(&self) -> String {
        Sha256::digest(&self.bytes)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }

    /// Writes a tick into every message that will not get one each time.
    pub fn prepared(mut self) -> Self {
        if !self.ticks {
            for (number, entry) in self.bytes.chunks_exact_mut(self.size).enumerate() {
                tick::stamp(entry, number as u64);
            }
        }
        self
    }

    /// Message number `sequence`, ready to be sent.
    #[inline]
    pub fn message(&mut self, sequence: u64) -> &mut [u8] {
        let start = sequence as usize % ENTRIES * self.size;
        let message = &mut self.bytes[start..start + self.size];
        if self.ticks {
            tick::stamp(message, sequence);
        }
        message
    }
}

fn splitmix64(seed: u64) -> impl Iterator<Item = u64> {
    let mut state = seed;
    std::iter::repeat_with(move || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    })
}
