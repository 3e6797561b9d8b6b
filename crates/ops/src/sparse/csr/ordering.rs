//! SparseMatrixOrderingAMD: an order of elimination that keeps the Cholesky factor sparse.

use super::matrix::Csr;
use op::shapes::unknown;
use op::{Grad, Kernel, Op, PLAIN, Setup, unary};
use status::{Result, invalid};
use std::collections::{BTreeSet, HashSet};
use tensor::{Complex32, Complex64, DType, Tensor};

pub(crate) const OPS: &[Op] = &[Op {
    def: "SparseMatrixOrderingAMD(input: variant) -> output: int32",
    shape: unknown,
    grad: Grad::Unknown,
    kernel,
    facts: PLAIN,
}];

fn kernel(_: &Setup<'_>) -> Result<Kernel> {
    Ok(unary(|_, input| {
        let csr = Csr::take(&input, 0)?;
        if csr.rows != csr.columns {
            return Err(invalid!("sparse matrix must be square; got: {} != {}", csr.rows, csr.columns));
        }
        let mut orders = Vec::new();
        for batch in 0..csr.batches {
            let order = Elimination::new(csr.rows, lower(&csr, batch)?).order();
            orders.extend(order.into_iter().map(|row| row as i32));
        }
        match csr.rank() {
            2 => Ok(Tensor::vector(&orders)),
            _ => Tensor::from_slice([csr.batches, csr.rows], &orders),
        }
    })
    .heavy())
}

/// The entries below the diagonal; the matrix is symmetric.
fn lower(csr: &Csr, batch: usize) -> Result<Vec<(usize, usize)>> {
    match csr.dtype() {
        DType::F32 => below::<f32>(csr, batch),
        DType::F64 => below::<f64>(csr, batch),
        DType::C64 => below::<Complex32>(csr, batch),
        _ => below::<Complex64>(csr, batch),
    }
}

fn below<T: tensor::Element>(csr: &Csr, batch: usize) -> Result<Vec<(usize, usize)>> {
    let part = csr.part::<T>(batch)?;
    let entries =
        |row| part.entries(row).filter(move |&(column, _)| column < row).map(move |(column, _)| (row, column));
    Ok((0..csr.rows).flat_map(entries).collect())
}

/// The quotient graph of an elimination. An eliminated row becomes an element: the set of rows it connected. A row
/// knows its neighbours in the matrix and its elements, so the graph never takes more memory than the matrix.
struct Elimination {
    neighbours: Vec<HashSet<usize>>,
    elements: Vec<BTreeSet<usize>>,
    members: Vec<Vec<usize>>,
    /// Rows by their upper bounds of degrees. Of equal ones, those that no elimination touched come first, and then
    /// those with a smaller number.
    queue: BTreeSet<(usize, bool, usize)>,
    touched: Vec<bool>,
    degree: Vec<usize>,
}

impl Elimination {
    fn new(rows: usize, edges: Vec<(usize, usize)>) -> Elimination {
        let mut neighbours = vec![HashSet::new(); rows];
        for (a, b) in edges {
            neighbours[a].insert(b);
            neighbours[b].insert(a);
        }
        let degree: Vec<usize> = neighbours.iter().map(HashSet::len).collect();
        let queue = degree.iter().enumerate().map(|(row, &degree)| (degree, false, row)).collect();
        let (elements, members) = (vec![BTreeSet::new(); rows], vec![Vec::new(); rows]);
        Elimination { neighbours, elements, members, queue, touched: vec![false; rows], degree }
    }

    fn order(mut self) -> Vec<usize> {
        let mut order = Vec::with_capacity(self.degree.len());
        while let Some((.., pivot)) = self.queue.pop_first() {
            order.push(pivot);
            self.eliminate(pivot);
        }
        order
    }

    fn eliminate(&mut self, pivot: usize) {
        let absorbed = std::mem::take(&mut self.elements[pivot]);
        let mut joined: BTreeSet<usize> = self.neighbours[pivot].drain().collect();
        for &element in &absorbed {
            joined.extend(std::mem::take(&mut self.members[element]));
        }
        joined.remove(&pivot);
        for &row in &joined {
            self.neighbours[row].retain(|other| *other != pivot && !joined.contains(other));
            self.elements[row].retain(|element| !absorbed.contains(element));
            self.elements[row].insert(pivot);
        }
        self.members[pivot] = joined.iter().copied().collect();
        joined.into_iter().for_each(|row| self.update(row));
    }

    /// The bound counts a row again for each element that it shares.
    fn update(&mut self, row: usize) {
        let through: usize = self.elements[row].iter().map(|&element| self.live(element)).sum();
        let degree = (self.neighbours[row].len() + through).min(self.queue.len());
        self.queue.remove(&(self.degree[row], self.touched[row], row));
        (self.degree[row], self.touched[row]) = (degree, true);
        self.queue.insert((degree, true, row));
    }

    fn live(&self, element: usize) -> usize {
        self.members[element].len().saturating_sub(1)
    }
}
