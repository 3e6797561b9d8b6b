//! The columns of a file: their names, types, and whether a row has one value or several.

use super::{Cell, Row};
use bytes::Bytes;
use status::{Result, invalid};
use std::fmt;

/// The type of a column. The order is that of guessing: a column has the largest type of its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Type {
    /// 64-bit integers.
    Int,
    /// Floats; 32-bit ones in an Example.
    Float,
    /// Text or bytes.
    Text,
}

/// A column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// The type of its values.
    pub ty: Type,
    /// True if a row may have several values.
    pub list: bool,
    /// True if a row may have no value.
    pub optional: bool,
    /// True if floats need 64 bits.
    pub wide: bool,
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.ty {
            Type::Int => "int",
            Type::Float => "float",
            Type::Text => "text",
        })?;
        f.write_str(if self.list { " list" } else { "" })
    }
}

/// The values of a row in a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Typed {
    /// Integers.
    Ints(Vec<i64>),
    /// Floats of 32 bits.
    Floats(Vec<f32>),
    /// Floats of 64 bits.
    Doubles(Vec<f64>),
    /// Text or bytes.
    Bytes(Vec<Bytes>),
}

impl Typed {
    /// The number of values.
    #[cfg(feature = "parquet")]
    pub(super) fn len(&self) -> usize {
        match self {
            Typed::Ints(values) => values.len(),
            Typed::Floats(values) => values.len(),
            Typed::Doubles(values) => values.len(),
            Typed::Bytes(values) => values.len(),
        }
    }
}

/// The columns of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schema {
    /// The columns, in order.
    pub columns: Vec<Column>,
}

impl Schema {
    /// The columns of some rows, with the smallest types that hold all values.
    pub fn guess<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Schema {
        let (mut schema, mut count) = (Schema::default(), 0);
        let (mut present, mut texts): (Vec<usize>, Vec<bool>) = Default::default();
        for row in rows {
            count += 1;
            for (name, cell) in row {
                let place = schema.columns.iter().position(|column| column.name == *name).unwrap_or_else(|| {
                    schema.columns.push(Column::new(name));
                    present.push(0);
                    texts.push(false);
                    schema.columns.len() - 1
                });
                present[place] += usize::from(!is_missing(cell));
                texts[place] |= is_text(cell);
                schema.columns[place].widen(cell);
            }
        }
        for ((column, present), is_text) in schema.columns.iter_mut().zip(present).zip(texts) {
            column.optional = present < count;
            // Without any value nothing speaks for numbers. A text that looks like a list does not make the others lists.
            column.ty = if present == 0 || is_text { Type::Text } else { column.ty };
            column.list &= !is_text;
        }
        schema
    }

    /// Adds columns of which there is no value.
    pub fn add_unknown(&mut self, names: Vec<String>) {
        for name in names {
            if self.columns.iter().all(|column| column.name != name) {
                self.columns.push(Column { ty: Type::Text, optional: true, ..Column::new(&name) });
            }
        }
    }

    /// An error if there are no columns.
    pub(super) fn some_columns(&self) -> Result<()> {
        match self.columns.is_empty() {
            true => Err(invalid!("the input has no rows that name columns, and the output needs at least one")),
            false => Ok(()),
        }
    }

    /// Sets the type of a column, from `name=int`, `name=float list`.
    pub fn set(&mut self, text: &str) -> Result<()> {
        let wrong =
            || invalid!("'{text}' does not set a column; expected NAME=int, float or text, with ' list' for lists");
        let (name, ty) = text.split_once('=').ok_or_else(wrong)?;
        let (ty, list) = ty.split_once(' ').map_or((ty, false), |(ty, list)| (ty, list == "list"));
        let ty = match ty {
            "int" => Type::Int,
            "float" => Type::Float,
            "text" => Type::Text,
            _ => return Err(wrong()),
        };
        let known: Vec<&str> = self.columns.iter().map(|column| column.name.as_str()).collect();
        let missing = invalid!("there is no column '{name}'; the columns are {}", known.join(", "));
        let column = self.columns.iter_mut().find(|column| column.name == name).ok_or(missing)?;
        (column.ty, column.list, column.wide) = (ty, list, column.wide || column.ty != Type::Float);
        Ok(())
    }

    /// The values of a row in the order of the columns; none where the row has no value.
    pub fn convert(&self, row: Row) -> Result<Vec<Option<Typed>>> {
        let mut values: Vec<Option<Typed>> = vec![None; self.columns.len()];
        for (name, cell) in row {
            let place = self.columns.iter().position(|column| column.name == name);
            let place = place.ok_or_else(|| {
                invalid!("column '{name}' does not occur in the first rows, from which the schema was guessed")
            })?;
            values[place] = self.columns[place].values(cell)?;
        }
        Ok(values)
    }
}

fn is_missing(cell: &Cell) -> bool {
    match cell {
        Cell::Missing => true,
        Cell::Untyped(text) => text.is_empty(),
        _ => false,
    }
}

/// True for a field that can only be a text.
fn is_text(cell: &Cell) -> bool {
    match cell {
        Cell::Untyped(text) if !text.is_empty() => {
            type_of(text) == Type::Text && super::json_format::list(text).is_none()
        }
        _ => false,
    }
}

impl Column {
    fn new(name: &str) -> Column {
        Column { name: name.to_string(), ty: Type::Int, list: false, optional: false, wide: false }
    }

    fn widen(&mut self, cell: &Cell) {
        let ty = match cell {
            Cell::Missing => return,
            Cell::Untyped(text) if text.is_empty() => return,
            Cell::Untyped(text) => match super::json_format::list(text) {
                Some(cells) => return self.widen(&Cell::List(cells)),
                None => type_of(text),
            },
            Cell::Int(_) => Type::Int,
            Cell::Float(_) | Cell::Single(_) => Type::Float,
            Cell::Bytes(_) => Type::Text,
            Cell::List(cells) => {
                self.list = true;
                return cells.iter().for_each(|cell| self.widen(cell));
            }
        };
        self.wide |= matches!(cell, Cell::Float(_) | Cell::Untyped(_));
        self.ty = self.ty.max(ty);
    }

    /// The values of a cell in the type of the column; none for a missing value.
    fn values(&self, cell: Cell) -> Result<Option<Typed>> {
        let cells = match cell {
            cell if is_missing(&cell) => return Ok(None),
            Cell::Untyped(text) if self.list => super::json_format::list(&text).unwrap_or(vec![Cell::Untyped(text)]),
            Cell::List(cells) => cells,
            cell => vec![cell],
        };
        if !self.list && cells.len() != 1 {
            return Err(invalid!("column '{}' has {} values in a row where one is expected", self.name, cells.len()));
        }
        let cells = cells.into_iter();
        Ok(Some(match self.ty {
            Type::Int => Typed::Ints(cells.map(|cell| self.int(cell)).collect::<Result<_>>()?),
            Type::Float if self.wide => Typed::Doubles(cells.map(|cell| self.float(cell)).collect::<Result<_>>()?),
            Type::Float => Typed::Floats(cells.map(|cell| Ok(self.float(cell)? as f32)).collect::<Result<_>>()?),
            Type::Text => Typed::Bytes(cells.map(|cell| self.bytes(cell)).collect::<Result<_>>()?),
        }))
    }

    fn int(&self, cell: Cell) -> Result<i64> {
        match &cell {
            Cell::Int(value) => Ok(*value),
            Cell::Untyped(text) => text.trim().parse().map_err(|_| self.wrong(&cell)),
            _ => Err(self.wrong(&cell)),
        }
    }

    fn float(&self, cell: Cell) -> Result<f64> {
        match &cell {
            Cell::Int(value) => Ok(*value as f64),
            Cell::Float(value) => Ok(*value),
            Cell::Single(value) => Ok((*value).into()),
            Cell::Untyped(text) => text.trim().parse().map_err(|_| self.wrong(&cell)),
            _ => Err(self.wrong(&cell)),
        }
    }

    fn bytes(&self, cell: Cell) -> Result<Bytes> {
        match cell {
            Cell::Bytes(bytes) => Ok(bytes),
            Cell::Untyped(text) => Ok(text.into()),
            Cell::Int(value) => Ok(value.to_string().into()),
            Cell::Float(value) => Ok(format!("{value:?}").into()),
            Cell::Single(value) => Ok(format!("{value:?}").into()),
            other => Err(self.wrong(&other)),
        }
    }

    fn wrong(&self, cell: &Cell) -> status::Error {
        let value = match cell {
            Cell::Untyped(text) => format!("'{text}'"),
            Cell::Bytes(bytes) => format!("'{}'", String::from_utf8_lossy(bytes)),
            Cell::Int(value) => value.to_string(),
            Cell::Float(value) => format!("{value:?}"),
            Cell::Single(value) => format!("{value:?}"),
            Cell::Missing => "null".to_string(),
            Cell::List(cells) => format!("list of {}", cells.len()),
        };
        let value = shortened(value);
        invalid!(
            "column '{}' has the value {value}, which is not of type {self}; the type was guessed from the first rows, and \
             --column '{}=text' sets another",
            self.name,
            self.name
        )
    }
}

/// The beginning of a long value.
fn shortened(value: String) -> String {
    match value.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None => value,
    }
}

/// The number of characters of a value in an error.
const SHOWN: usize = 80;

fn type_of(text: &str) -> Type {
    let text = text.trim();
    match (text.parse::<i64>(), text.parse::<f64>()) {
        (Ok(_), _) => Type::Int,
        // As a float, an integer beyond 64 bits would lose digits.
        (_, Ok(_)) if text.bytes().any(|byte| !byte.is_ascii_digit() && !b"+-".contains(&byte)) => Type::Float,
        _ => Type::Text,
    }
}
