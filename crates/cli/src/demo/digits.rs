//! Pictures of digits, computed from a seed. The Python twin computes the same pictures, bit for bit.

use flowgrid::prelude::*;

/// Side of a picture, in pixels.
pub const SIDE: usize = 12;
/// Pixels of a picture.
pub const PIXELS: usize = SIDE * SIDE;

/// The ten digits, each of seven rows of five pixels.
const GLYPHS: [[&[u8; 5]; 7]; 10] = [
    [b".###.", b"#...#", b"#..##", b"#.#.#", b"##..#", b"#...#", b".###."],
    [b"..#..", b".##..", b"..#..", b"..#..", b"..#..", b"..#..", b".###."],
    [b".###.", b"#...#", b"....#", b"...#.", b"..#..", b".#...", b"#####"],
    [b"#####", b"...#.", b"..#..", b"...#.", b"....#", b"#...#", b".###."],
    [b"...#.", b"..##.", b".#.#.", b"#..#.", b"#####", b"...#.", b"...#."],
    [b"#####", b"#....", b"####.", b"....#", b"....#", b"#...#", b".###."],
    [b"..##.", b".#...", b"#....", b"####.", b"#...#", b"#...#", b".###."],
    [b"#####", b"....#", b"...#.", b"..#..", b".#...", b".#...", b".#..."],
    [b".###.", b"#...#", b"#...#", b".###.", b"#...#", b"#...#", b".###."],
    [b".###.", b"#...#", b"#...#", b".####", b"....#", b"...#.", b".##.."],
];

/// The random numbers that a picture draws before those of its pixels.
const HEAD: u64 = 4;

/// All pictures of a seed. Each is computed when it is requested.
pub struct Digits {
    seed: u64,
}

impl Digits {
    /// The pictures of a seed.
    pub fn new(seed: u64) -> Digits {
        Digits { seed }
    }

    /// The indices of the pictures of a training step, below `count`.
    pub fn batch(&self, step: usize, size: usize, count: usize) -> Vec<usize> {
        let draw = |place| self.draw(u64::MAX - step as u64, place as u64) % count as u64;
        (0..size).map(|place| draw(place) as usize).collect()
    }

    /// Pictures by index, one row each, and the digits they show.
    pub fn examples(&self, numbers: &[usize]) -> Result<(Tensor, Tensor)> {
        let mut pixels = Vec::with_capacity(numbers.len() * PIXELS);
        let labels: Vec<i32> = numbers.iter().map(|&number| self.picture(number as u64, &mut pixels)).collect();
        Ok((Tensor::from_slice([numbers.len(), PIXELS], &pixels)?, labels.into()))
    }

    /// A digit at a random place and of a random brightness, with noise.
    fn picture(&self, number: u64, pixels: &mut Vec<f32>) -> i32 {
        let digit = (self.draw(number, 0) % 10) as usize;
        let left = 3 + (self.draw(number, 1) % 3) as usize;
        let top = 2 + (self.draw(number, 2) % 2) as usize;
        let ink = 0.5f32 + 0.5f32 * self.unit(number, 3);
        for pixel in 0..PIXELS {
            let (row, column) = (pixel / SIDE, pixel % SIDE);
            let inside = (top..top + 7).contains(&row) && (left..left + 5).contains(&column);
            let drawn = inside && GLYPHS[digit][row - top][column - left] == b'#';
            let noise = 0.6f32 * self.unit(number, HEAD + pixel as u64);
            pixels.push(if drawn { ink + noise } else { noise });
        }
        digit as i32
    }

    /// A number from 0 to 1 with 24 bits, which a float represents exactly.
    fn unit(&self, stream: u64, place: u64) -> f32 {
        (self.draw(stream, place) >> 40) as f32 / (1u64 << 24) as f32
    }

    /// The random number at a place of a stream: SplitMix64 of a counter.
    fn draw(&self, stream: u64, place: u64) -> u64 {
        mix(mix(self.seed).wrapping_add(stream.wrapping_mul(1024)).wrapping_add(place))
    }
}

fn mix(counter: u64) -> u64 {
    let mut z = counter.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
