//! Summaries of a graph's values, with the names and tags that TensorFlow's `tf.compat.v1.summary` gives them.

use crate::collection::SUMMARIES;
use graph::{AttrValue, Graph, Node, Output, Scope};
use ops::raw;
use ops::summary as op;
use tensor::{DType, Tensor};

/// The name of the plugin that shows text, for `SummaryMetadata`.
const TEXT: &[u8] = b"\x0a\x06\x0a\x04text";

/// A number.
pub fn scalar(name: &str, value: &Output) -> Output {
    NO_FAMILY.scalar(name, value)
}

/// A histogram.
pub fn histogram(name: &str, values: &Output) -> Output {
    NO_FAMILY.histogram(name, values)
}

/// At most `most` images of shape [image, row, column, channel].
pub fn image(name: &str, pictures: &Output, most: i64) -> Output {
    NO_FAMILY.image(name, pictures, most)
}

/// At most `most` sounds of shape [sound, frame, channel], with the sample rate in Hz.
pub fn audio(name: &str, sounds: &Output, rate: f32, most: i64) -> Output {
    NO_FAMILY.audio(name, sounds, rate, most)
}

/// Text.
pub fn text(name: &str, strings: &Output) -> Output {
    NO_FAMILY.tensor(name, strings, TEXT)
}

/// A tensor, with a `SummaryMetadata` message that tells how to show it, or empty.
pub fn tensor(name: &str, tensor: &Output, metadata: &[u8]) -> Output {
    NO_FAMILY.tensor(name, tensor, metadata)
}

/// Several summaries merged into one.
pub fn merge(scope: &Scope, summaries: &[Output]) -> Output {
    op::merge_summary(&scope.named("Merge"), summaries)
}

/// All summaries of a graph merged into one; none if there are none.
pub fn merge_all(graph: &Graph) -> Option<Output> {
    let root = graph.root();
    let name = |value: &AttrValue| match value {
        AttrValue::String(name) => Some(String::from_utf8_lossy(name).into_owned()),
        _ => None,
    };
    let names = graph.collection(SUMMARIES);
    let found = names.iter().filter_map(name).filter_map(|name| {
        let (node, index) = name.rsplit_once(':').unwrap_or((&name, "0"));
        Some(Node::find(&root, node)?.output(index.parse().ok()?))
    });
    let summaries: Vec<Output> = found.collect();
    (!summaries.is_empty()).then(|| merge(&root, &summaries))
}

/// A family of summaries, which viewers show together.
pub struct Family<'a>(Option<&'a str>);

const NO_FAMILY: Family<'static> = Family(None);

/// The family of this name.
pub fn family(name: &str) -> Family<'_> {
    Family(Some(name))
}

impl Family<'_> {
    /// A number.
    pub fn scalar(&self, name: &str, value: &Output) -> Output {
        let (scope, tag) = self.enter(name, value);
        let tags = constant(&scope, "tags", tag.into_bytes());
        collected(raw::scalar_summary(&tags, value).named_as_scope().output())
    }

    /// A histogram.
    pub fn histogram(&self, name: &str, values: &Output) -> Output {
        let (scope, tag) = self.enter(name, values);
        let tag = constant(&scope, "tag", tag.into_bytes());
        collected(raw::histogram_summary(&tag, values).named_as_scope().output())
    }

    /// At most `most` images of shape [image, row, column, channel].
    pub fn image(&self, name: &str, pictures: &Output, most: i64) -> Output {
        let (scope, tag) = self.enter(name, pictures);
        let tag = constant(&scope, "tag", tag.into_bytes());
        let bad_color = Tensor::vector(&op::BAD_COLOR);
        let node = raw::image_summary(&tag, pictures, &bad_color).named_as_scope();
        collected(node.attr("max_images", most).output())
    }

    /// At most `most` sounds of shape [sound, frame, channel], with the sample rate in Hz.
    pub fn audio(&self, name: &str, sounds: &Output, rate: f32, most: i64) -> Output {
        let (scope, tag) = self.enter(name, sounds);
        let rate = raw::const_(&scope, &Tensor::scalar(rate), DType::F32).named("sample_rate").output();
        let tag = constant(&scope, "tag", tag.into_bytes());
        let node = raw::audio_summary_v2(&tag, sounds, &rate).named_as_scope();
        collected(node.attr("max_outputs", most).output())
    }

    /// A tensor, with a `SummaryMetadata` message that tells how to show it, or empty.
    pub fn tensor(&self, name: &str, tensor: &Output, metadata: &[u8]) -> Output {
        let (scope, tag) = self.enter(name, tensor);
        let tag = constant(&scope, "tag", tag.into_bytes());
        let metadata = constant(&scope, "serialized_summary_metadata", metadata.to_vec());
        let node = raw::tensor_summary_v2(&tag, tensor, &metadata).named_as_scope();
        collected(node.output())
    }

    /// The scope of the nodes of a summary, and its tag. The scope is unique, so the tag is too.
    fn enter(&self, name: &str, value: &Output) -> (Scope, String) {
        let name = cleaned(name);
        let family = self.0.map(cleaned);
        let base = match &family {
            Some(family) => format!("{family}/{name}"),
            None => name,
        };
        let scope = value.scope().named(&base);
        let own = scope.prefix().trim_end_matches('/');
        let tag = match family {
            Some(family) => format!("{family}/{own}"),
            None => own.to_string(),
        };
        (scope, tag)
    }
}

/// Replaces characters that tags cannot have: all but letters, digits and `-_./`, and a leading slash.
fn cleaned(name: &str) -> String {
    let allowed = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    let clean: String = name.chars().map(|c| if allowed(c) { c } else { '_' }).collect();
    clean.trim_start_matches('/').to_string()
}

fn constant(scope: &Scope, name: &str, value: Vec<u8>) -> Output {
    raw::const_(scope, &Tensor::string(value), DType::STRING).named(name).output()
}

fn collected(summary: Output) -> Output {
    summary.scope().graph().add_to_collection(SUMMARIES, summary.name());
    summary
}
