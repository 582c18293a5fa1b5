//! Percentiles of any number of durations, in bounded memory.

/// Durations are kept to this many leading bits: exact below 2 µs, within 0.1 % above.
const PRECISION: u32 = 10;
/// The longest that is told apart, 2^40 ns, is 18 minutes.
const LONGEST: u64 = (1 << 40) - 1;

pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
    max: u64,
}

impl Histogram {
    pub fn new() -> Self {
        Self {
            counts: vec![0; Self::bucket(LONGEST) + 1],
            total: 0,
            max: 0,
        }
    }

    #[inline]
    pub fn record(&mut self, nanoseconds: u64) {
        self.counts[Self::bucket(nanoseconds.min(LONGEST))] += 1;
        self.total += 1;
        self.max = self.max.max(nanoseconds);
    }

    /// Its members of a JSON object.
    pub fn json(&self) -> String {
        format!(
            r#""p50": {}, "p90": {}, "p99": {}, "p999": {}, "max": {}"#,
            self.percentile(50.0),
            self.percentile(90.0),
            self.percentile(99.0),
            self.percentile(99.9),
            self.max
        )
    }

    /// The duration that so many percent do not exceed, as far as it is told apart.
    fn percentile(&self, percent: f64) -> u64 {
        let rank = ((self.total as f64 * percent / 100.0).ceil() as u64).max(1);
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return Self::value(bucket);
            }
        }
        0
    }

    /// Each power of two has 2^PRECISION buckets of the same width.
    #[inline]
    fn bucket(value: u64) -> usize {
        let shift = Self::shift(value);
        ((u64::from(shift) << PRECISION) + (value >> shift)) as usize
    }

    fn value(bucket: usize) -> u64 {
        let shift = (bucket >> PRECISION).saturating_sub(1);
        (bucket as u64 - ((shift as u64) << PRECISION)) << shift
    }

    #[inline]
    fn shift(value: u64) -> u32 {
        value.max(1).ilog2().saturating_sub(PRECISION)
    }
}
