//! Variables split by TensorFlow's rules. The numbers of parts are what real TensorFlow's partitioners answer.

use super::graph;
use crate::{Partitioner, Reuse, VariableScope};
use tensor::{DType, Shape};

const SHAPES: [(&[usize], DType); 5] = [
    (&[2, 3], DType::F32),
    (&[100, 7], DType::F32),
    (&[100, 7], DType::I64),
    (&[1024, 1024], DType::F32),
    (&[33, 5], DType::STRING),
];

#[track_caller]
fn check(rule: Partitioner, axis: usize, counts: [usize; 5]) {
    let parts = SHAPES.map(|(shape, dtype)| rule.axis(axis).parts(&Shape::new(shape), dtype).unwrap());
    assert_eq!(parts, counts.map(|count| (axis, count)), "{rule:?}");
}

#[test]
fn rules_answer_as_tensorflows() {
    check(Partitioner::fixed(4), 0, [2, 4, 4, 4, 4]);
    check(Partitioner::fixed(4), 1, [3, 4, 4, 4, 4]);
    check(Partitioner::max_bytes(1000), 0, [1, 3, 6, 1024, 3]);
    check(Partitioner::max_bytes(1000).at_most(3), 0, [1, 3, 3, 3, 3]);
    check(Partitioner::max_bytes(7), 1, [3, 7, 7, 1024, 5]);
    check(Partitioner::min_bytes(10, 256), 0, [1, 10, 10, 10, 10]);
    check(Partitioner::min_bytes(10, 256 << 10), 0, [1, 1, 1, 10, 1]);
    check(Partitioner::min_bytes(10, 100), 1, [1, 7, 7, 10, 5]);
    for bad in [Partitioner::fixed(0), Partitioner::max_bytes(0), Partitioner::fixed(2).axis(2)] {
        assert!(bad.parts(&Shape::new(&[2, 3]), DType::F32).is_err(), "{bad:?}");
    }
}

#[test]
fn a_scope_splits_its_variables_and_finds_them_again() {
    let graph = graph();
    let scope = VariableScope::new(&graph.root()).enter("model").partitioner(Partitioner::fixed(3));
    let table = scope.get_partitioned("table", [7, 2]);
    let names: Vec<String> = table.parts().iter().map(|part| part.name()).collect();
    assert_eq!(names, ["model/table/part_0", "model/table/part_1", "model/table/part_2"]);
    let slices: Vec<String> = table.parts().iter().filter_map(|part| Some(part.slice()?.spec())).collect();
    assert_eq!(slices, ["7 2 0,3:0,2", "7 2 3,2:0,2", "7 2 5,2:0,2"]);
    let again = scope.reuse(Reuse::Auto).get_partitioned("table", [7, 2]);
    assert_eq!((again.shape(), again.axis()), (Shape::new(&[7, 2]), 0));
    assert_eq!(again.parts().iter().map(|part| part.name()).collect::<Vec<_>>(), names);
    graph.check().unwrap();
}

#[test]
fn names_that_cannot_be_given_are_refused_in_tensorflows_words() {
    let refused = |reuse: Reuse, rule: Partitioner, name: &str, shape: [usize; 2]| {
        let graph = graph();
        let scope = VariableScope::new(&graph.root());
        scope.partitioner(Partitioner::fixed(3)).get_partitioned("t", [7, 2]);
        graph.check().unwrap();
        scope.partitioner(rule).reuse(reuse).get_partitioned(name, shape);
        graph.check().unwrap_err().message
    };
    let three = Partitioner::fixed(3);
    assert!(refused(Reuse::Never, three, "t", [7, 2]).contains("Partitioned variable with name t already exists."));
    assert!(refused(Reuse::Always, three, "u", [7, 2]).contains("PartitionedVariable u does not exist"));
    let shape = refused(Reuse::Always, three, "t", [7, 3]);
    assert!(shape.contains("specified shape [7,3] and found shape [7,2]."), "{shape}");
    let parts = refused(Reuse::Always, Partitioner::fixed(2), "t", [7, 2]);
    assert!(parts.contains("specified partitions [2, 1] and found partitions [3, 1]."), "{parts}");
}
