//! Audio summaries: sounds under tags, as WAV files.

use super::{numbered, scalar_tag};
use graph::{AttrValue, Output};
use io::event::{Audio, SummaryData, SummaryValue, write_summary};
use op::shapes::scalar;
use op::{Kernel, Op, PLAIN, Setup, many, outputs};
use status::{Result, invalid};
use tensor::{Bytes, Tensor};

pub(crate) const OPS: &[Op] = rows! {
    "AudioSummary(tag: string, tensor: float) -> summary: string; sample_rate: float; max_outputs: int >= 1 = 3",
        scalar, audio_kernel, PLAIN.removed_in(15, "Use AudioSummaryV2.");
    "AudioSummaryV2(tag: string, tensor: float, sample_rate: float) -> summary: string; max_outputs: int >= 1 = 3",
        scalar, audio_kernel;
};

/// A summary of up to `most` sounds, of shape [sound, frame, channel] or [sound, frame].
pub fn audio_summary(tag: &Output, sounds: &Output, rate: &Output, most: impl Into<AttrValue>) -> Output {
    let op = sounds.scope().op("AudioSummaryV2").input(tag).input(sounds).input(rate);
    op.attr("max_outputs", most).output()
}

fn audio_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let most = most_outputs(setup)?;
    let fixed = if setup.def().op == "AudioSummary" { Some(setup.float("sample_rate")?) } else { None };
    Ok(many(move |_, mut inputs| {
        let (tag, tensor) = (inputs.tensor(0)?, inputs.tensor(1)?);
        let tag = scalar_tag(&tag, "Tag must be a scalar")?;
        check_rank(&tensor)?;
        let rate = match fixed {
            Some(rate) => rate,
            None => sample_rate(&inputs.tensor(2)?)?,
        };
        Ok(outputs![Tensor::string(message(&tag, &tensor, rate, most)?)])
    })
    .heavy())
}

/// Attribute `max_outputs`.
pub(super) fn most_outputs(setup: &Setup<'_>) -> Result<usize> {
    match usize::try_from(setup.int("max_outputs")?) {
        Ok(most) if most > 0 => Ok(most),
        _ => Err(invalid!("max_outputs must be > 0")),
    }
}

fn sample_rate(tensor: &Tensor) -> Result<f32> {
    match tensor.values::<f32>()? {
        [rate] => Ok(*rate),
        _ => Err(invalid!("sample_rate must be rank-0 or contain a single value")),
    }
}

fn check_rank(tensor: &Tensor) -> Result<()> {
    match tensor.shape().rank() {
        2 | 3 => Ok(()),
        _ => Err(invalid!("Tensor must be 3-D or 2-D, got: {}", tensor.shape())),
    }
}

/// A Summary message of the first sounds of a tensor.
pub(super) fn message(tag: &str, tensor: &Tensor, rate: f32, most: usize) -> Result<Bytes> {
    check_rank(tensor)?;
    if !(rate > 0.0) {
        return Err(invalid!("sample_rate must be > 0"));
    }
    let dims = tensor.shape().dims();
    let (count, frames, channels) = (dims[0], dims[1], dims.get(2).copied().unwrap_or(1));
    let samples = tensor.values::<f32>()?;
    let size = frames * channels;
    if size == 0 && frames > 0 && count > 0 {
        return Err(invalid!("audio is null"));
    }
    let whole_rate = (f64::from(rate).round_ties_even() as u64).max(1);
    let sound = |index: usize| {
        let audio = Audio {
            sample_rate: rate,
            num_channels: channels as i64,
            length_frames: frames as i64,
            encoded: wav(&samples[index * size..][..size], whole_rate, channels)?,
            content_type: "audio/wav".to_string(),
        };
        let tag = numbered(tag, "audio", index, most);
        Ok(SummaryValue { tag, data: SummaryData::Audio(audio), ..SummaryValue::default() })
    };
    let sounds = (0..count.min(most)).map(sound).collect::<Result<Vec<_>>>()?;
    write_summary(&sounds)
}

/// A WAV file of 16-bit samples. Its first 44 bytes are the header.
pub(super) fn wav(samples: &[f32], rate: u64, channels: usize) -> Result<Bytes> {
    const HEADER: usize = 44;
    let Ok(rate @ 1..) = u32::try_from(rate) else {
        return Err(invalid!("sample_rate must be in (0, 2^32), got: {rate}"));
    };
    let Ok(channels @ 1..) = u16::try_from(channels) else {
        return Err(invalid!("num_channels must be in (0, 2^16), got: {channels}"));
    };
    let size = samples.len().checked_mul(2).and_then(|size| u32::try_from(size + HEADER).ok());
    let size = size.ok_or_else(|| invalid!("Provided channels and frames cannot be encoded as a WAV."))?;
    let frame = channels.wrapping_mul(2);
    let second = rate.wrapping_mul(2).wrapping_mul(channels.into());
    let mut file = Vec::with_capacity(size as usize);
    file.extend_from_slice(b"RIFF");
    file.extend_from_slice(&(size - 8).to_le_bytes());
    file.extend_from_slice(b"WAVEfmt \x10\0\0\0\x01\0");
    file.extend_from_slice(&channels.to_le_bytes());
    file.extend_from_slice(&rate.to_le_bytes());
    file.extend_from_slice(&second.to_le_bytes());
    file.extend_from_slice(&frame.to_le_bytes());
    file.extend_from_slice(b"\x10\0data");
    file.extend_from_slice(&(size - HEADER as u32).to_le_bytes());
    file.extend(samples.iter().flat_map(|&sample| ((sample * 32768.0).round() as i16).to_le_bytes()));
    Ok(file.into())
}
