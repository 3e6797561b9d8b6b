//! DecodeWav: sounds in WAV files.

use graph::{AttrValue, Output, ShapeQuery};
use op::{Grad, Kernel, Op, PLAIN, Setup, many, outputs};
use status::{Result, invalid};
use tensor::{PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "DecodeWav(contents: string) -> audio: float, sample_rate: int32; desired_channels: int = -1; \
          desired_samples: int = -1",
    shape,
    grad: Grad::Unknown,
    kernel,
    facts: PLAIN,
}];

/// Chunks that may come before the format.
const SKIPPED: [&[u8]; 8] = [b"JUNK", b"bext", b"iXML", b"qlty", b"mext", b"levl", b"link", b"axml"];

/// The samples of a WAV file, of shape [sample, channel], and the samples per second.
pub fn decode_wav(contents: &Output) -> (Output, Output) {
    let node = contents.scope().op("DecodeWav").input(contents).node();
    (node.output(0), node.output(1))
}

fn shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    query.inputs[0].merge(&PartialShape::scalar())?;
    let int = |name: &str| match query.attr(name) {
        Ok(AttrValue::Int(value)) => *value,
        _ => -1,
    };
    let [samples, channels] = desired(int("desired_samples"), int("desired_channels"))?;
    Ok(vec![PartialShape::new(&[samples, channels]), PartialShape::scalar()])
}

/// The desired numbers of samples and channels, -1 for those of the file.
fn desired(samples: i64, channels: i64) -> Result<[i64; 2]> {
    match () {
        _ if channels < -1 => Err(invalid!("channels must be non-negative, got {channels}")),
        _ if samples < -1 => Err(invalid!("samples must be non-negative, got {samples}")),
        _ => Ok([samples, channels]),
    }
}

fn kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let desired = desired(setup.int("desired_samples")?, setup.int("desired_channels")?)?;
    Ok(many(move |_, mut inputs| {
        let contents = inputs.tensor(0)?;
        if contents.shape().rank() != 0 {
            return Err(invalid!("contents must be scalar, got shape {}", contents.shape()));
        }
        let file = contents.to_string_scalar()?;
        let sound = Sound::read(&file)?;
        Ok(outputs![sound.tensor(desired)?, Tensor::scalar(sound.rate as i32)])
    })
    .heavy())
}

/// A sound with 16-bit samples.
struct Sound<'a> {
    rate: u32,
    channels: u16,
    /// The bytes of the samples, one sample of every channel after the other.
    samples: &'a [u8],
}

impl Sound<'_> {
    fn read(file: &[u8]) -> Result<Sound<'_>> {
        let mut reader = Reader { left: file };
        reader.expect(b"RIFF")?;
        reader.u32()?;
        reader.expect(b"WAVE")?;
        reader.skip_to_format()?;
        let (rate, channels) = reader.format()?;
        let samples = reader.data(usize::from(channels) * 2)?;
        Ok(Sound { rate, channels, samples })
    }

    /// The samples as numbers between -1 and 1, of the desired shape where it is not -1: missing samples are zero, and
    /// missing channels repeat the last one.
    fn tensor(&self, desired: [i64; 2]) -> Result<Tensor> {
        let channels = usize::from(self.channels);
        let count = self.samples.len() / (channels * 2);
        let size = |desired: i64, found: usize| if desired == -1 { found as i64 } else { desired };
        let mut tensor = Tensor::zeros::<f32>(Shape::checked(&[size(desired[0], count), size(desired[1], channels)])?)?;
        let width = tensor.shape()[1];
        if width == 0 {
            return Ok(tensor);
        }
        let frames = self.samples.chunks_exact(channels * 2);
        for (to, frame) in tensor.values_mut::<f32>()?.chunks_exact_mut(width).zip(frames) {
            for (channel, to) in to.iter_mut().enumerate() {
                let at = channel.min(channels - 1) * 2;
                *to = f32::from(i16::from_le_bytes([frame[at], frame[at + 1]])) / 32768.0;
            }
        }
        Ok(tensor)
    }
}

/// Reads a file from its beginning.
struct Reader<'a> {
    left: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let too_short = || invalid!("Data too short when trying to read string");
        let (taken, left) = self.left.split_at_checked(count).ok_or_else(too_short)?;
        self.left = left;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    fn u16(&mut self) -> Result<u16> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn expect(&mut self, text: &[u8]) -> Result<()> {
        let found = self.take(text.len())?;
        match found == text {
            true => Ok(()),
            false => Err(invalid!("Header mismatch: Expected {} but found {}", shown(text), shown(found))),
        }
    }

    fn skip_to_format(&mut self) -> Result<()> {
        loop {
            let found = self.take(4)?;
            if found == b"fmt " {
                return Ok(());
            }
            if !SKIPPED.contains(&found) {
                return Err(invalid!("Unexpected field {}", shown(found)));
            }
            let size = self.u32()?;
            self.take(size as usize)?;
        }
    }

    /// The sample rate and the number of channels.
    fn format(&mut self) -> Result<(u32, u16)> {
        let size = self.u32()?;
        if size != 16 && size != 18 {
            return Err(invalid!("Bad format chunk size for WAV: Expected 16 or 18, but got{size}"));
        }
        let coding = self.u16()?;
        if coding != 1 {
            return Err(invalid!("Bad audio format for WAV: Expected 1 (PCM), but got{coding}"));
        }
        let channels = self.u16()?;
        if channels < 1 {
            return Err(invalid!("Bad number of channels for WAV: Expected at least 1, but got {channels}"));
        }
        let rate = self.u32()?;
        self.check_sizes(rate, channels)?;
        if size == 18 {
            self.left = self.left.get(2..).unwrap_or_default();
        }
        Ok((rate, channels))
    }

    /// Sizes that follow from the rate and the number of channels.
    fn check_sizes(&mut self, rate: u32, channels: u16) -> Result<()> {
        let (per_second, per_frame, bits) = (self.u32()?, self.u16()?, self.u16()?);
        if bits != 16 {
            return Err(invalid!("Can only read 16-bit WAV files, but received {bits}"));
        }
        let expected = u32::from(channels) * 2;
        if u32::from(per_frame) != expected {
            return Err(invalid!("Bad bytes per sample in WAV header: Expected {expected} but got {per_frame}"));
        }
        let expected = u64::from(per_frame) * u64::from(rate);
        if u64::from(per_second) != expected {
            return Err(invalid!(
                "Bad bytes per second in WAV header: Expected {expected} but got {per_second} (sample_rate={rate}, \
                 bytes_per_sample={per_frame})"
            ));
        }
        Ok(())
    }

    /// The whole frames of the one data chunk.
    fn data(&mut self, frame: usize) -> Result<&'a [u8]> {
        let mut data = None;
        while !self.left.is_empty() {
            let (id, size) = (self.take(4)?, self.u32()?);
            if size > i32::MAX as u32 {
                return Err(invalid!(
                    "WAV data chunk '{}' is too large: {size} bytes, but the limit is {}",
                    shown(id),
                    i32::MAX
                ));
            }
            if id != b"data" {
                self.left = self.left.get(size as usize..).unwrap_or_default();
            } else if data.is_some() {
                return Err(invalid!("More than one data chunk found in WAV"));
            } else {
                data = Some(self.take(size as usize / frame * frame)?);
            }
        }
        data.ok_or_else(|| invalid!("No data chunk found in WAV"))
    }
}

fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}
