//! Loads matrices of checkpoints whose rows and columns are assigned to other words.

use super::systems;
use graph::ShapeQuery;
use io::slice::Extent;
use io::{Bundle, FileSystems, TensorSlice};
use op::{Kernel, Op, PLAIN, Setup, many, outputs};
use rustc_hash::FxHashMap;
use status::{Result, failed_precondition, invalid, unimplemented_op};
use std::collections::hash_map::Entry;
use tensor::{Bytes, DType, PartialShape, Shape, Tensor};

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "GenerateVocabRemapping(new_vocab_file: string, old_vocab_file: string) -> remapping: int64, \
              num_present: int32; new_vocab_offset: int >= 0; num_new_vocab: int >= 0; old_vocab_size: int >= -1 = -1",
        shape: vocabulary_shapes,
        grad: op::Grad::Stop,
        kernel: vocabulary_kernel,
        facts: PLAIN,
    },
    Op {
        def: "LoadAndRemapMatrix(ckpt_path: string, old_tensor_name: string, row_remapping: int64, \
              col_remapping: int64, initializing_values: float) -> output_matrix: float; num_rows: int >= 0; \
              num_cols: int >= 1; max_rows_in_memory: int = -1; stateful",
        shape: matrix_shape,
        grad: op::Grad::Stop,
        kernel: matrix_kernel,
        facts: PLAIN,
    },
];

fn vocabulary_shapes(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let count = match query.attr("num_new_vocab")? {
        graph::AttrValue::Int(count) => *count,
        _ => -1,
    };
    Ok(vec![PartialShape::new(&[count]), PartialShape::scalar()])
}

fn matrix_shape(query: &ShapeQuery<'_>) -> Result<Vec<PartialShape>> {
    let size = |name: &str| match query.attr(name) {
        Ok(graph::AttrValue::Int(size)) => *size,
        _ => -1,
    };
    Ok(vec![PartialShape::new(&[size("num_rows"), size("num_cols")])])
}

fn vocabulary_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let systems = systems(setup)?;
    let size = |name: &str| Ok::<_, status::Error>(usize::try_from(setup.int(name)?).unwrap_or(0));
    let (offset, count) = (size("new_vocab_offset")?, size("num_new_vocab")?);
    let old_size = usize::try_from(setup.int("old_vocab_size")?).ok();
    Ok(many(move |_, mut inputs| {
        let new = lines(&systems, &file(&inputs.tensor(0)?, "new_vocab_file")?, None)?;
        let wanted = offset.checked_add(count).and_then(|end| new.get(offset..end));
        let wanted =
            wanted.ok_or_else(|| invalid!("lookup table size must be larger than last new vocab entry's line"))?;
        let old = numbered(lines(&systems, &file(&inputs.tensor(1)?, "old_vocab_file")?, old_size)?)?;
        let remapping: Vec<i64> = wanted.iter().map(|word| old.get(word).copied().unwrap_or(-1)).collect();
        let present = remapping.iter().filter(|&&number| number != -1).count();
        Ok(outputs![Tensor::vector(&remapping), Tensor::scalar(present as i32)])
    })
    .heavy())
}

fn file(tensor: &Tensor, name: &str) -> Result<String> {
    if tensor.shape().rank() != 0 {
        return Err(invalid!("{name} should be a single string, but got {}", tensor.shape()));
    }
    match tensor.to_string_scalar()? {
        name if name.is_empty() => Err(invalid!("new vocab filename cannot be empty.")),
        name => Ok(String::from_utf8_lossy(&name).into_owned()),
    }
}

/// The words of a vocabulary file, one per line: all of them, or exactly the first `count`.
fn lines(systems: &FileSystems, name: &str, size: Option<usize>) -> Result<Vec<Bytes>> {
    let contents = systems.read(name)?;
    let (mut words, mut position) = (Vec::new(), 0);
    for line in contents.split_inclusive(|&byte| byte == b'\n').take(size.unwrap_or(usize::MAX)) {
        let word = line.strip_suffix(b"\n").unwrap_or(line);
        let word = word.strip_suffix(b"\r").unwrap_or(word);
        position += line.len();
        if word.is_empty() {
            return Err(invalid!("Invalid content in {name}: empty line found at position {position}."));
        }
        words.push(contents.slice_ref(word));
    }
    match size {
        Some(size) if size != words.len() => {
            Err(invalid!("Invalid vocab_size in {name}: expected {size} but got {}", words.len()))
        }
        _ => Ok(words),
    }
}

/// The line of each word.
fn numbered(words: Vec<Bytes>) -> Result<FxHashMap<Bytes, i64>> {
    let mut numbers = FxHashMap::default();
    for (number, word) in (0..).zip(words) {
        match numbers.entry(word) {
            Entry::Vacant(free) => drop(free.insert(number)),
            Entry::Occupied(taken) => {
                return Err(failed_precondition!(
                    "HashTable has different value for same key. Key {} has {} and trying to add value {number}",
                    String::from_utf8_lossy(taken.key()),
                    taken.get()
                ));
            }
        }
    }
    Ok(numbers)
}

/// How a matrix is remapped.
struct Remap {
    rows: usize,
    cols: usize,
    /// The number of rows read at once.
    window: Option<usize>,
}

fn matrix_kernel(setup: &Setup<'_>) -> Result<Kernel> {
    let systems = systems(setup)?;
    let size = |name: &str| Ok::<_, status::Error>(usize::try_from(setup.int(name)?).unwrap_or(0));
    let window = Some(size("max_rows_in_memory")?).filter(|&window| window > 0);
    let remap = Remap { rows: size("num_rows")?, cols: size("num_cols")?, window };
    Ok(many(move |_, mut inputs| {
        let (rows, cols, fill) = (inputs.tensor(2)?, inputs.tensor(3)?, inputs.tensor(4)?);
        let (rows, cols) = remap.check(&rows, &cols)?;
        let path = inputs.tensor(0)?;
        if path.elements() != 1 {
            let shape = path.shape();
            return Err(invalid!("The `ckpt_path` tensor must have exactly one element, got tensor of shape {shape}"));
        }
        let text =
            |tensor: &Tensor| Ok::<_, status::Error>(String::from_utf8_lossy(&tensor.to_string_scalar()?).into_owned());
        let bundle = Bundle::open(&systems, &text(&path)?)?;
        let name = text(&inputs.tensor(1)?)?;
        let width = remap.check_stored(&bundle, &name, cols.is_some())?;
        let mut out = Tensor::zeros::<f32>(Shape::new(&[remap.rows, remap.cols]))?;
        remap.copy(&bundle, &name, width, &rows, cols.as_deref(), out.values_mut()?)?;
        remap.fill(&rows, cols.as_deref(), fill.values()?, out.values_mut()?)?;
        Ok(outputs![out])
    })
    .heavy())
}

impl Remap {
    /// The old rows, and the old columns if they change: by their new number, negative where there is none.
    fn check(&self, rows: &Tensor, cols: &Tensor) -> Result<(Vec<i64>, Option<Vec<i64>>)> {
        if rows.shape().rank() != 1 {
            let shape = rows.shape();
            return Err(invalid!("The `row_remapping` tensor must be 1-D, got a tensor of shape {shape}"));
        }
        let (rows, cols) = (rows.values::<i64>()?, cols.values::<i64>()?);
        if rows.len() != self.rows {
            let (found, wanted) = (rows.len(), self.rows);
            return Err(invalid!("Size of row_remapping is {found} instead of being equal to num_rows={wanted}"));
        }
        only_once(rows)?;
        if cols.is_empty() {
            return Ok((rows.to_vec(), None));
        }
        if cols.len() != self.cols {
            let (found, wanted) = (cols.len(), self.cols);
            return Err(invalid!(
                "Provided col_remapping, but its size is {found} instead of being equal to num_cols={wanted}"
            ));
        }
        only_once(cols)?;
        Ok((rows.to_vec(), Some(cols.to_vec())))
    }

    /// How many columns the stored matrix has.
    fn check_stored(&self, bundle: &Bundle, name: &str, remaps_cols: bool) -> Result<usize> {
        let entry = bundle.entry(name)?;
        let (dtype, shape, wanted) = (entry.dtype, &entry.shape, self.cols);
        if dtype != DType::F32 {
            return Err(invalid!("Tensor {name} has invalid type {dtype} instead of expected type float"));
        }
        let &[_, width] = shape.dims() else {
            let rank = shape.rank();
            return Err(invalid!(
                "Tensor {name} has shape {shape} of invalid rank {rank} instead of expected shape of rank 2."
            ));
        };
        if !remaps_cols && width != wanted {
            return Err(invalid!(
                "Tensor {name} has shape {shape}, where the size of its 2nd dimension is {width} instead of being equal \
                 to num_cols={wanted}"
            ));
        }
        Ok(width)
    }

    /// Brings old cells to their new places.
    fn copy(
        &self,
        bundle: &Bundle,
        name: &str,
        width: usize,
        rows: &[i64],
        cols: Option<&[i64]>,
        out: &mut [f32],
    ) -> Result<()> {
        let places: FxHashMap<i64, usize> = places(rows).collect();
        let cols: Vec<(usize, usize)> = match cols {
            Some(cols) => places_within(cols, width),
            None => (0..width).map(|col| (col, col)).collect(),
        };
        let (Some(&first), Some(&last)) = (places.keys().min(), places.keys().max()) else { return Ok(()) };
        let window = self.window.map_or(i64::MAX, |window| window as i64);
        let mut start = first;
        while start <= last {
            let count = (last - start).saturating_add(1).min(window);
            let extent = Extent { start: start as usize, length: count as usize };
            let slice = TensorSlice::new(vec![Some(extent), None]);
            let part = bundle.read_slice(name, &slice)?;
            for (row, values) in (start..).zip(part.values::<f32>()?.chunks_exact(width.max(1))) {
                let Some(&new) = places.get(&row) else { continue };
                let target = &mut out[new * self.cols..][..self.cols];
                cols.iter().for_each(|&(old, new)| target[new] = values[old]);
            }
            start = start.saturating_add(count);
        }
        Ok(())
    }

    /// Initializes the cells that were not in the checkpoint, in order.
    fn fill(&self, rows: &[i64], cols: Option<&[i64]>, values: &[f32], out: &mut [f32]) -> Result<()> {
        let count = values.len();
        let is_old = |col: usize| cols.is_none_or(|cols| cols[col] >= 0);
        let mut left = values.iter();
        for (row, cells) in rows.iter().zip(out.chunks_exact_mut(self.cols.max(1))) {
            for (col, cell) in cells.iter_mut().enumerate() {
                if *row < 0 || !is_old(col) {
                    *cell = *left.next().ok_or_else(|| {
                        invalid!("initializing_values contained {count} elements, but more missing values remain.")
                    })?;
                }
            }
        }
        match left.len() {
            0 => Ok(()),
            rest => Err(invalid!(
                "initializing_values contained {count} elements, but only {} elements were used to fill in missing \
                 values.",
                count - rest
            )),
        }
    }
}

/// Old numbers and their new ones.
fn places(remapping: &[i64]) -> impl Iterator<Item = (i64, usize)> + '_ {
    remapping.iter().enumerate().filter(|(_, old)| **old >= 0).map(|(new, &old)| (old, new))
}

/// Those of old numbers below `width`.
fn places_within(remapping: &[i64], width: usize) -> Vec<(usize, usize)> {
    let within = places(remapping).filter_map(|(old, new)| Some((usize::try_from(old).ok()?, new)));
    within.filter(|&(old, _)| old < width).collect()
}

fn only_once(remapping: &[i64]) -> Result<()> {
    let mut seen = FxHashMap::default();
    for (old, new) in places(remapping) {
        if let Some(other) = seen.insert(old, new) {
            return Err(unimplemented_op!(
                "Old ID {old} is mapped to both new ID {other} and {new}, which is not supported."
            ));
        }
    }
    Ok(())
}
