//! EncodeWav: a sound as a WAV file; newer audio summaries consist of such files.

use super::audio::wav;
use graph::Output;
use op::shapes::scalar;
use op::{Kernel, Op, Setup, many, outputs};
use status::{Result, invalid};
use tensor::Tensor;

pub(crate) const OPS: &[Op] = rows! {
    "EncodeWav(audio: float, sample_rate: int32) -> contents: string", scalar, encode_kernel;
};

/// A WAV file of a sound of shape [frame, channel].
pub fn encode_wav(audio: &Output, sample_rate: &Output) -> Output {
    audio.scope().op("EncodeWav").input(audio).input(sample_rate).output()
}

fn encode_kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(many(|_, mut inputs| {
        let (audio, rate) = (inputs.tensor(0)?, inputs.tensor(1)?);
        let &[_, channels] = audio.shape().dims() else {
            return Err(invalid!("audio must be 2-dimensional{}", audio.shape()));
        };
        if rate.shape().rank() != 0 {
            return Err(invalid!("Input sample_rate should be a scalar tensor, got {} instead.", rate.shape()));
        }
        let samples = audio.values::<f32>()?;
        if samples.len() >= i32::MAX as usize {
            return Err(invalid!("Cannot encode audio with >= max int32 elements"));
        }
        let rate = i64::from(rate.to_scalar::<i32>()?) as u64; // a negative one is too large
        Ok(outputs![Tensor::string(wav(samples, rate, channels)?)])
    })
    .heavy())
}
