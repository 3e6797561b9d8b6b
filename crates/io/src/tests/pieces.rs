//! Checkpoints written and read piece by piece: the same as in one go.

use super::fixture;
use crate::{Bundle, BundleWriter, FileSystems, TensorSlice};
use status::{Code, Result};
use tensor::{DType, Shape, Tensor};

/// Longer than a few pieces.
fn matrix() -> Tensor {
    Tensor::from_slice([700, 1000], &(0..700_000).collect::<Vec<i64>>()).unwrap()
}

fn bytes(tensor: &Tensor) -> &[u8] {
    tensor.buffer().unwrap().bytes()
}

/// All pieces of a slice together; none if it has none.
fn pieces(bundle: &Bundle, name: &str, slice: Option<&TensorSlice>) -> Result<Option<Vec<u8>>> {
    let Some(mut pieces) = bundle.pieces(name, slice)? else { return Ok(None) };
    let mut all = Vec::new();
    while let Some(piece) = pieces.next_piece()? {
        assert!(!piece.is_empty() && piece.len() <= 1 << 20);
        all.extend_from_slice(&piece);
    }
    Ok(Some(all))
}

#[test]
fn pieces_are_written_as_a_tensor_is() {
    let (systems, whole) = (FileSystems::local(), matrix());
    let (shape, slice) = (Shape::new(&[1400, 1000]), TensorSlice::parse("700,700:-").unwrap());
    let mut one = BundleWriter::create(&systems, "ram://one/model").unwrap();
    one.add("a", &whole).unwrap();
    one.add_slice("b", &shape, &slice, &whole).unwrap();
    one.finish().unwrap();
    let mut other = BundleWriter::create(&systems, "ram://other/model").unwrap();
    for (name, part) in [("a", None), ("b", Some((&shape, &slice)))] {
        other.begin(name, part, DType::I64, whole.shape()).unwrap();
        bytes(&whole).chunks(99_999).for_each(|piece| other.append(piece).unwrap());
        other.end().unwrap();
    }
    assert!(other.begin("a", None, DType::I64, whole.shape()).is_err(), "it is there already");
    other.finish().unwrap();
    for file in ["model.index", "model.data-00000-of-00001"] {
        assert!(systems.read(&format!("ram://one/{file}")) == systems.read(&format!("ram://other/{file}")), "{file}");
    }
}

#[test]
fn a_tensor_with_too_few_bytes_is_none() {
    let systems = FileSystems::local();
    let mut writer = BundleWriter::create(&systems, "ram://short/model").unwrap();
    assert!(writer.append(&[1]).is_err());
    writer.begin("a", None, DType::I64, &Shape::new(&[2])).unwrap();
    writer.append(&[0; 15]).unwrap();
    assert!(writer.end().is_err());
    drop(writer);
    assert!(systems.list("ram://short").unwrap().is_empty());
}

#[test]
fn pieces_are_what_a_slice_is() {
    let bundle = Bundle::open(&FileSystems::local(), &fixture("sharded/model-3")).unwrap();
    let slice = |text: &str| TensorSlice::parse(text).unwrap();
    for (name, text) in
        [("parts", "3,2:-"), ("parts", "2,4:-"), ("parts", "0,7:-"), ("parts", "6,1:1,1"), ("whole", "1,1")]
    {
        let wanted = bundle.read_slice(name, &slice(text)).unwrap();
        assert_eq!(pieces(&bundle, name, Some(&slice(text))).unwrap().unwrap(), bytes(&wanted), "{name} {text}");
    }
    assert_eq!(pieces(&bundle, "parts", None).unwrap().unwrap(), bytes(&bundle.read("parts").unwrap()));
    assert!(pieces(&bundle, "parts", Some(&slice("2,4:1,1"))).unwrap().is_none(), "its rows do not touch");
    assert!(pieces(&bundle, "parts", Some(&slice("6,2:-"))).is_err());
    let words = Bundle::open(&FileSystems::local(), &fixture("model")).unwrap();
    assert!(pieces(&words, "words", None).unwrap().is_none(), "strings have no pieces");
}

#[test]
fn slices_longer_than_a_piece_are_found_and_summed() {
    let (systems, whole) = (FileSystems::local(), matrix());
    let mut writer = BundleWriter::create(&systems, "ram://long/model").unwrap();
    writer.add("a", &whole).unwrap();
    writer.finish().unwrap();
    let values = whole.values::<i64>().unwrap();
    let check = |bundle: &Bundle| -> Result<()> {
        let (rows, columns) = (TensorSlice::parse("100,500:-").unwrap(), TensorSlice::parse("-:999,1").unwrap());
        let read = bundle.read_slice("a", &rows)?;
        assert!(read.values::<i64>().unwrap() == &values[100_000..600_000]);
        assert!(pieces(bundle, "a", Some(&rows))?.unwrap() == bytes(&read));
        let last: Vec<i64> = values.iter().copied().skip(999).step_by(1000).collect();
        assert_eq!(bundle.read_slice("a", &columns)?.values::<i64>().unwrap(), last);
        Ok(())
    };
    check(&Bundle::open(&systems, "ram://long/model").unwrap()).unwrap();
    let data = "ram://long/model.data-00000-of-00001";
    let mut damaged = systems.read(data).unwrap().to_vec();
    *damaged.last_mut().unwrap() ^= 1; // outside of the rows that are wanted
    systems.write(data, &damaged).unwrap();
    let bundle = Bundle::open(&systems, "ram://long/model").unwrap();
    assert_eq!(check(&bundle).unwrap_err().code, Code::DataLoss);
    assert_eq!(pieces(&bundle, "a", None).unwrap_err().code, Code::DataLoss);
}
