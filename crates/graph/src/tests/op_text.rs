//! Signatures written as text.

use crate::{Arg, ArgType, AttrKind, AttrList, AttrValue, Signature};
use proptest::prelude::*;
use tensor::{Bytes, DType, PartialShape};

fn arg(name: &str, ty: ArgType, number: Option<&str>, is_ref: bool) -> Arg {
    Arg { name: name.into(), ty, number: number.map(Into::into), is_ref }
}

#[test]
fn arguments_are_read() {
    let text = "Op(a: float, b: T, c: N * T, d: [L], e: Ref(T), f: Ref(N * int32)) -> y: T, z: [L]; T: type";
    let signature = Signature::parse(text).unwrap();
    let of = |name: &str| ArgType::Attr(name.into());
    assert_eq!(signature.name, "Op");
    assert_eq!(
        signature.inputs,
        [
            arg("a", ArgType::Fixed(DType::F32), None, false),
            arg("b", of("T"), None, false),
            arg("c", of("T"), Some("N"), false),
            arg("d", ArgType::List("L".into()), None, false),
            arg("e", of("T"), None, true),
            arg("f", ArgType::Fixed(DType::I32), Some("N"), true),
        ]
    );
    assert_eq!(signature.outputs, [arg("y", of("T"), None, false), arg("z", ArgType::List("L".into()), None, false)]);
}

fn attr(text: &str) -> crate::AttrDef {
    Signature::parse(&format!("Op(); {text}")).unwrap().attrs.remove(0)
}

#[test]
fn attributes_are_read() {
    let strings = |items: &[&'static str]| items.iter().map(|item| Bytes::from(*item)).collect::<Vec<_>>();
    let list = attr("x: list(int) >= 2 = [1, -2]");
    assert_eq!(
        (list.kind, list.list, list.minimum, list.default),
        (AttrKind::Int, true, Some(2), Some(vec![1i64, -2].into()))
    );
    assert_eq!(attr("x: bool = true").default, Some(true.into()));
    assert_eq!(attr("x: float = 1e-05").default, Some(1e-5f32.into()));
    assert_eq!(attr("x: float = -inf").default, Some(f32::NEG_INFINITY.into()));
    assert_eq!(attr("x: string = \"a;b, \\\"c\\\"\"").default, Some("a;b, \"c\"".into()));
    assert_eq!(attr("x: shape = [2, -1]").default, Some(PartialShape::new(&[2, -1]).into()));
    assert_eq!(attr("x: shape = ?").default, Some(PartialShape::unknown().into()));
    assert_eq!(attr("x: list(shape) = []").default, Some(AttrValue::from(AttrList::default())));
    assert_eq!(attr("x: list(string) = [\"a\", \"b\"]").default, Some(strings(&["a", "b"]).into()));
    let choice = attr("x: {\"SAME\", \"VALID\"} = \"SAME\"");
    assert_eq!((choice.kind, choice.allowed), (AttrKind::String, Some(strings(&["SAME", "VALID"]).into())));
    let types = attr("x: {float, int32} = int32");
    assert_eq!((types.default, types.allowed), (Some(DType::I32.into()), Some(vec![DType::F32, DType::I32].into())));
    let Some(AttrValue::List(all)) = attr("x: numbertype").allowed else { panic!("no list") };
    assert_eq!(all.types.len(), 19);
}

#[test]
fn flags_are_read() {
    let signature = Signature::parse("Op(); stateful; commutative; aggregate; uninitialized; distributed").unwrap();
    assert!(signature.stateful && signature.commutative && signature.aggregate);
    assert!(signature.allows_uninitialized_input && signature.distributed_communication);
    assert!(!Signature::parse("Op()").unwrap().stateful);
}

#[test]
fn what_cannot_be_read_is_named() {
    for (text, part) in [
        ("Op", "bad head"),
        ("Op(a)", "bad head"),
        ("Op(; x: int", "bad head"),
        ("Op(); x", "bad attribute 'x'"),
        ("Op(); x: what", "bad attribute 'x: what'"),
        ("Op(); x: int = y", "bad attribute 'x: int = y'"),
        ("Op(); x: int >= y", "bad attribute 'x: int >= y'"),
    ] {
        let message = Signature::parse(text).unwrap_err().message;
        assert!(message.contains(part), "{text}: {message}");
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "[A-Za-z(){}\\[\\]:;,*=>\" 0-9-]{0,60}") {
        let _ = Signature::parse(&text);
    }
}

#[test]
fn every_attribute_kind_has_one_name() {
    use crate::AttrKind::*;
    for kind in [String, Int, Float, Bool, Type, Shape, Tensor, Func] {
        assert_eq!(crate::AttrKind::from_name(kind.name()), Some(kind), "{}", kind.name());
    }
    assert_eq!(crate::AttrKind::from_name("list"), None);
}
