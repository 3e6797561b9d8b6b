//! A lazily materialised buffer behaves like one that is materialised at once.

use crate::{Buffer, DType, Element, Shape, Tensor};

/// Enough elements to be materialised lazily.
const MANY: usize = (5 << 20) + 3;

fn many<T: Element>(value: T) -> Tensor {
    Tensor::uniform([MANY], &Tensor::scalar(value)).unwrap()
}

fn check<T: Element>(value: T) {
    let tensor = many(value);
    assert!(tensor.values::<T>().unwrap().iter().all(|&found| found == value));
    let content: Vec<u8> = many(value).buffer().unwrap().to_pieces().concat();
    assert_eq!(content, tensor.buffer().unwrap().bytes());
}

#[test]
fn every_width() {
    check(7u8);
    check(-300i16);
    check(1.5f32);
    check(0.0f32);
    check(-2.25f64);
    check(crate::Complex64::new(1.0, -1.0));
    check(true);
}

#[test]
fn few_elements_are_made_at_once() {
    for count in [0, 1, 3, 1000] {
        let tensor = Tensor::uniform([count], &Tensor::scalar(3i32)).unwrap();
        assert_eq!(tensor.values::<i32>().unwrap(), vec![3; count]);
    }
}

#[test]
fn sending_makes_nothing() {
    let tensor = many(1.5f32);
    let pieces = tensor.buffer().unwrap().to_pieces();
    assert!(pieces.len() > 2);
    assert!(pieces.iter().all(|piece| piece.as_ptr() == pieces[0].as_ptr()));
}

#[test]
fn parts_begin_anywhere() {
    let whole = many(0x0403_0201u32);
    let whole = whole.buffer().unwrap();
    for (start, len) in [(0, 20), (1, 5), (2, 16), (3, 17), (4 * MANY - 7, 7), (6, 4 * MANY - 6)] {
        let bytes = whole.slice(start, len).bytes().to_vec();
        let expected: Vec<u8> = (start..start + len).map(|place| (place % 4) as u8 + 1).collect();
        assert!(bytes == expected, "{len} bytes from {start} on");
    }
}

#[test]
fn who_writes_gets_elements_of_its_own() {
    let mut written = many(2.0f32);
    let kept = written.clone();
    assert!(!written.is_unique());
    written.values_mut::<f32>().unwrap()[5] = 9.0;
    assert_eq!(written.values::<f32>().unwrap()[4..7], [2.0, 9.0, 2.0]);
    assert_eq!(kept.values::<f32>().unwrap()[4..7], [2.0, 2.0, 2.0]);
}

#[test]
fn the_last_owner_writes_what_was_read() {
    let mut tensor = many(2.0f32);
    let place = tensor.values::<f32>().unwrap().as_ptr();
    assert!(tensor.is_unique());
    assert_eq!(tensor.values_mut::<f32>().unwrap().as_ptr(), place);
}

#[test]
fn a_part_that_was_made_is_shared() {
    let mut whole = many(2.0f32);
    whole.values::<f32>().unwrap();
    let part = whole.slice_elements(10, [100]).unwrap();
    whole.values_mut::<f32>().unwrap()[10] = 1.0;
    assert_eq!(part.values::<f32>().unwrap()[0], 2.0);
}

#[test]
fn more_than_the_machine_has() {
    let error = Tensor::uniform([1usize << 60], &Tensor::scalar(1.0f32)).unwrap_err();
    assert!(error.to_string().contains("OOM when allocating tensor"), "{error}");
    assert!(Buffer::uniform(&[1, 2, 3], 9).is_none());
    let two = Tensor::vector(&[1.0f32, 2.0]);
    assert!(Tensor::uniform(Shape::scalar(), &two).is_err());
    assert!(Tensor::uniform([2], &Tensor::string("x")).is_err());
}

#[test]
fn memory_is_promised_once() {
    let all = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = all.lines().find_map(|line| line.strip_prefix("MemAvailable:")).expect("memory is counted here");
    let kilobytes: usize = line.trim().trim_end_matches(" kB").parse().expect("a number");
    let third = Tensor::scalar(1.0f32);
    let make = || Tensor::uniform([kilobytes / 3, 256], &third);
    let kept = [make().unwrap(), make().unwrap()];
    assert!([make(), make()].iter().any(Result::is_err), "four thirds of all memory");
    drop(kept);
    assert!(make().is_ok());
}

#[test]
fn constants_of_one_value_are_not_made_when_read() {
    use crate::wire::{decode_tensor, encode_shape};
    let message = proto::tensorflow::TensorProto {
        dtype: DType::F32.number(),
        tensor_shape: Some(encode_shape(&[MANY].into())),
        float_val: vec![0.5],
        ..Default::default()
    };
    let tensor = decode_tensor(message).unwrap();
    assert!(tensor.buffer().unwrap().to_pieces().len() > 2);
    assert_eq!(tensor.values::<f32>().unwrap()[MANY - 1], 0.5);
}
