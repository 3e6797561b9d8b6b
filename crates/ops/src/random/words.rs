//! Draws numbers one by one from the words of a stream.

/// The words of a stream, as samplers of discrete things use them.
pub(crate) struct Words<I>(I);

impl<I: Iterator<Item = u32>> Words<I> {
    /// A source of numbers over these words.
    pub fn new(words: I) -> Words<I> {
        Words(words)
    }

    fn word(&mut self) -> u32 {
        self.0.next().unwrap_or_default()
    }

    /// Two words, the lower one first.
    fn word64(&mut self) -> u64 {
        let low = self.word();
        u64::from(low) | u64::from(self.word()) << 32
    }

    /// A uniform number from zero to below one.
    pub fn float(&mut self) -> f32 {
        f32::from_bits(0x3f80_0000 | (self.word() & 0x7f_ffff)) - 1.0
    }

    /// A uniform number from zero to below one.
    pub fn double(&mut self) -> f64 {
        let (high, low) = (self.word(), self.word());
        f64::from_bits(1023 << 52 | u64::from(high & 0xf_ffff) << 32 | u64::from(low)) - 1.0
    }

    /// An integer below `n`, all equally likely: words that would favour low ones are rejected.
    pub fn below(&mut self, n: u32) -> u32 {
        if n.is_power_of_two() || n == 0 {
            return self.word() & n.wrapping_sub(1);
        }
        let rejected = u32::MAX % n + 1;
        loop {
            match self.word() {
                word if word < rejected => {}
                word => return word % n,
            }
        }
    }

    /// As `below`, from two words.
    pub fn below64(&mut self, n: u64) -> u64 {
        if n.is_power_of_two() || n == 0 {
            return self.word64() & n.wrapping_sub(1);
        }
        let rejected = u64::MAX % n + 1;
        loop {
            match self.word64() {
                word if word < rejected => {}
                word => return word % n,
            }
        }
    }
}
