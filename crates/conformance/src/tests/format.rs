//! Reading cases and comparing tensors.

use crate::{Expected, Feed, Want, compare, parse, parse_graphs};
use tensor::Tensor;

#[test]
fn a_case_is_read() {
    let text =
        "# note\nop Relu T=float\nin  x float[2] -1 inf\nout y float[2] 0 inf\ngrad x none\ntol 1e-3\n\nop NoOp\nok\n";
    let cases = parse("a.case", text).unwrap();
    assert_eq!(cases.len(), 2);
    assert_eq!((cases[0].place.as_str(), cases[0].op.as_str()), ("a.case:2", "Relu"));
    assert_eq!(cases[0].attrs, [("T".to_string(), "float".to_string())]);
    assert_eq!(cases[0].inputs[0].1.value.as_ref().unwrap().values::<f32>().unwrap(), [-1.0, f32::INFINITY]);
    assert_eq!(cases[0].tolerance, Some(1e-3));
    assert!(matches!(&cases[1].want, Want::Outputs { outputs, .. } if outputs.is_empty()));
}

#[test]
fn what_cannot_be_read_is_named() {
    for (line, complaint) in [
        ("in x float[2] 1", "a.case:2: 1 values do not match shape [2]"),
        ("in x float[2] 1 y", "a.case:2: y is not a value of type float"),
        ("in x flout 1", "a.case:2: flout is not a type and a shape"),
        ("what", "a.case:2: what is 'what'?"),
        ("error Wrong \"x\"", "a.case:2: Wrong is not an error code"),
    ] {
        assert_eq!(parse("a.case", &format!("op X\n{line}\n")).unwrap_err().message, complaint);
    }
}

fn difference(found: &Tensor, expected: &str) -> String {
    let words: Vec<&str> = expected.split(' ').collect();
    compare(found, &Expected::parse(&words).unwrap(), None).err().unwrap_or_default()
}

#[test]
fn numbers_are_compared_by_type() {
    let found = Tensor::vector(&[1.0f32, f32::NAN, 1e8]);
    assert_eq!(difference(&found, "float[3] 1.000001 nan 100000001"), "");
    assert_eq!(difference(&found, "float[3] 1.1 nan 100000001"), "[0] is 1.0, expected 1.1");
    assert_eq!(difference(&found, "double[3] 1 1 1"), "type float instead of double");
    assert_eq!(difference(&found, "float[1,3] 1 nan 1"), "shape [3] instead of [1,3]");
    let large = Tensor::vector(&[i64::MAX, -1]);
    assert_eq!(difference(&large, "int64[2] 9223372036854775807 -1"), "");
    assert_ne!(difference(&large, "int64[2] 9223372036854775806 -1"), "");
    let strings = Tensor::string("a b");
    assert_eq!(difference(&strings, "string[] \"a\\x20b\""), "");
    assert_eq!(difference(&strings, "string[] \"ab\""), "[0] is \"a b\", expected \"ab\"");
}

#[test]
fn samples_are_compared_with_their_sums() {
    let found = Tensor::vector(&[1.0f32, 2.0, 4.0]);
    let mix = 2.0 * 0.618_033_988_75 + 4.0 * 0.236_067_977_5;
    assert_eq!(difference(&found, &format!("float[3] 0=1 2=4 sum=7 mix={mix}")), "");
    assert_eq!(difference(&found, &format!("float[3] 0=1 2=4 sum=8 mix={mix}")), "sum 7+0i instead of 8+0i");
    assert_eq!(difference(&found, &format!("float[3] 0=1 2=5 sum=7 mix={mix}")), "[2] is 4.0, expected 5.0");
}

const GRAPH: &str = "graph producer=15
function twice x=float
  node sum Add x x
  return y=sum
in   x    float 3
const file string \"{tmp}/f\"
node call StatefulPartitionedCall x f=twice Tout=[float] ^file
run call:0
out call float[] 6
in   x    float 4
in   old  last(call)
run call old ^x
error Internal \"no\"

op NoOp
ok
";

#[test]
fn a_graph_is_read() {
    let cases = parse_graphs("a.case", GRAPH);
    assert_eq!((cases.len(), parse("a.case", GRAPH).unwrap().len()), (1, 1));
    let program = cases[0].read(&data::registry(), "/folder").unwrap();
    assert_eq!(program.graph.versions.producer, 15);
    assert_eq!(program.graph.nodes[2].inputs, ["x", "^file"]);
    assert_eq!(program.graph.library.functions["twice"].ret["y"], "sum:z:0");
    assert_eq!(program.steps[1].fetches, ["call:0", "old:0"]);
    assert_eq!(program.steps[1].targets, ["x"]);
    assert!(matches!(&program.steps[0].feeds["x"], Feed::Value(value) if value.to_scalar::<f32>().unwrap() == 3.0));
    assert!(matches!(&program.steps[1].feeds["old"], Feed::Last(fetch) if fetch == "call:0"));
    assert!(matches!(&program.steps[1].want, Want::Error(..)));
    let ops: Vec<String> = program.ops().into_iter().collect();
    assert_eq!(ops, ["Add", "Const", "Placeholder", "StatefulPartitionedCall", "_Arg", "_Retval"]);
    assert!(program.idle().is_empty());
}

#[test]
fn graphs_that_cannot_be_read_say_where() {
    for (line, complaint) in [
        ("node x Nothing", "a.case:2: there is no op or function Nothing"),
        ("node x Neg y", "a.case:2: NodeDef missing attr 'T' from Op<name=Neg>"),
        ("node x Neg", "a.case:2: x has no input x"),
        ("return x=y", "a.case:2: return from what?"),
        ("out x float 1", "a.case:2: what is 'out x float 1'?"),
    ] {
        let read = parse_graphs("a.case", &format!("graph\n{line}\n"))[0].read(&data::registry(), "");
        let message = read.unwrap_err().message;
        assert!(message.starts_with(complaint), "{message}");
    }
    let idle = parse_graphs("a.case", "graph\nconst x float 1\nconst y float 2\nrun x\n")[0].clone();
    assert_eq!(idle.read(&data::registry(), "").unwrap().idle(), ["y"]);
}
