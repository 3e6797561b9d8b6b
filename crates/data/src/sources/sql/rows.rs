//! The rows of a query to an SQLite database.
//!
//! A statement of SQLite cannot move between threads, and a step of it may take long. So each iterator has a thread that
//! owns the connection, and reads a bounded number of rows ahead.

use super::Query;
use crate::{Element, Iterate, Next, PollContext, StateReader, StateWriter, full_name};
use parking_lot::{Condvar, Mutex};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Error as SqlError, OpenFlags, Row, ffi};
use status::{Code, Error, Result, internal, invalid};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Poll, Waker};
use std::thread::JoinHandle;
use tensor::{Bytes, DType, Tensor};

/// How many rows are read ahead at most.
const ROWS_AHEAD: usize = 256;
/// How many bytes of strings are read ahead at most, beside the last row.
const BYTES_AHEAD: usize = 1 << 20;
/// After how many instructions of its virtual machine SQLite looks whether the iterator is gone.
const CHECK_EVERY: i32 = 10_000;

/// Reads the result of a query. The query begins with the first request.
pub(super) struct RowIterator {
    query: Query,
    prefix: Arc<str>,
    reader: Option<Reader>,
    /// How many rows were requested. TensorFlow counts the request that finds the end, too.
    calls: usize,
    ended: bool,
}

impl RowIterator {
    pub(super) fn new(query: Query, prefix: Arc<str>) -> RowIterator {
        RowIterator { query, prefix, reader: None, calls: 0, ended: false }
    }

    /// The reader, which passes over the rows that were returned before if it starts now.
    fn reader(&mut self) -> Result<&Reader> {
        if self.reader.is_none() {
            self.reader = Some(Reader::start(self.query.clone(), self.calls)?);
        }
        self.reader.as_ref().ok_or_else(|| internal!("There is no reader"))
    }
}

impl Iterate for RowIterator {
    fn poll_next(&mut self, ctx: &mut PollContext<'_>) -> Next {
        if self.ended {
            return Poll::Ready(Ok(None));
        }
        let row = match self.reader()?.poll(ctx.waker) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(row) => row,
        };
        match &row {
            Ok(row) => {
                self.calls += 1;
                self.ended = row.is_none();
            }
            // The next request runs the query again.
            Err(_) => self.reader = None,
        }
        Poll::Ready(row)
    }

    fn save(&self, writer: &mut StateWriter) -> Result<()> {
        if self.reader.is_some() {
            writer.int(&self.prefix, &full_name(&self.prefix, "next_calls"), self.calls as i64);
        }
        Ok(())
    }

    fn restore(&mut self, reader: &Arc<StateReader>) -> Result<()> {
        self.reader = None;
        self.ended = false;
        self.calls = match reader.contains(&self.prefix, "next_calls") {
            true => reader.count(&self.prefix, "next_calls")?,
            false => 0,
        };
        Ok(())
    }
}

/// The thread of a query. Dropping it interrupts the query and waits for the thread.
struct Reader {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Notified when rows are taken, and at the end.
    taken: Condvar,
    stopped: AtomicBool,
}

#[derive(Default)]
struct State {
    rows: VecDeque<Element>,
    /// The bytes of strings in `rows`.
    bytes: usize,
    /// How the query ended.
    end: Option<Result<()>>,
    waker: Option<Waker>,
}

impl Reader {
    fn start(query: Query, skip: usize) -> Result<Reader> {
        let shared = Arc::new(Shared::default());
        let of_thread = shared.clone();
        let run = move || {
            let end = read(&query, skip, &of_thread);
            of_thread.change(|state| state.end = Some(end));
        };
        let thread = std::thread::Builder::new().name("data-sql".to_string()).spawn(run);
        let thread = thread.map_err(|error| status::exhausted!("Could not start the thread of a query: {error}"))?;
        Ok(Reader { shared, thread: Some(thread) })
    }

    fn poll(&self, waker: &Waker) -> Next {
        let mut state = self.shared.state.lock();
        if let Some(row) = state.rows.pop_front() {
            state.bytes -= bytes(&row);
            self.shared.taken.notify_one();
            return Poll::Ready(Ok(Some(row)));
        }
        match &state.end {
            Some(end) => Poll::Ready(end.clone().map(|()| None)),
            None => {
                state.waker = Some(waker.clone());
                Poll::Pending
            }
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::Relaxed);
        drop(self.shared.state.lock()); // the thread waits now, or will see that it is stopped
        self.shared.taken.notify_one();
        // The last owner may be woken by the thread itself, which then ends by itself.
        let thread = self.thread.take().filter(|thread| thread.thread().id() != std::thread::current().id());
        if let Some(thread) = thread {
            _ = thread.join();
        }
    }
}

impl Shared {
    /// Changes the state, and wakes the iterator that waits.
    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state.lock();
        change(&mut state);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Adds a row as soon as there is room. False if the iterator is gone.
    fn push(&self, row: Element) -> bool {
        let mut state = self.state.lock();
        while (state.rows.len() >= ROWS_AHEAD || state.bytes >= BYTES_AHEAD) && !self.is_stopped() {
            self.taken.wait(&mut state);
        }
        drop(state);
        self.change(|state| {
            state.bytes += bytes(&row);
            state.rows.push_back(row);
        });
        !self.is_stopped()
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}

fn bytes(row: &Element) -> usize {
    row.iter().filter_map(|value| value.strings().ok()).flatten().map(Bytes::len).sum()
}

/// Runs the query, and hands its rows to the iterator.
fn read(query: &Query, skip: usize, shared: &Arc<Shared>) -> Result<()> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_URI;
    let mut connection = Connection::open_with_flags(&query.source, flags)
        .map_err(|error| failure(&error, &format!("Sqlite::Open({}) failed: ", query.source), ""))?;
    let stopped = shared.clone();
    let stop = move || stopped.is_stopped();
    connection.progress_handler(CHECK_EVERY, Some(stop)).map_err(|error| failure(&error, "", ""))?;
    let text = &query.text;
    let mut statement = connection.prepare(text).map_err(|error| failure(&error, "Prepare() failed: ", text))?;
    if statement.column_count() != query.types.len() {
        return Err(invalid!(
            "The number of columns in query ({}) must match the number of elements in output_types ({}).",
            statement.column_count(),
            query.types.len()
        ));
    }
    let mut skip = skip;
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next().map_err(|error| failure(&error, "Step() failed: ", text))? {
        if skip > 0 {
            skip -= 1;
        } else if !shared.push(element(&connection, row, &query.types)?) {
            break;
        }
    }
    Ok(())
}

fn element(connection: &Connection, row: &Row<'_>, types: &[DType]) -> Result<Element> {
    types.iter().enumerate().map(|(column, &dtype)| value(connection, row, column, dtype)).collect()
}

fn value(connection: &Connection, row: &Row<'_>, column: usize, dtype: DType) -> Result<Tensor> {
    let found = row.get_ref(column).map_err(|error| failure(&error, "", ""))?;
    if dtype == DType::STRING {
        return string(connection, found).map(Tensor::string);
    }
    if dtype == DType::F64 {
        return double(connection, found).map(Tensor::scalar);
    }
    let number = integer(connection, found)?;
    Ok(match dtype {
        DType::I8 => Tensor::scalar(number as i8),
        DType::I16 => Tensor::scalar(number as i16),
        DType::I32 => Tensor::scalar(number as i32),
        DType::U8 => Tensor::scalar(number as u8),
        DType::U16 => Tensor::scalar(number as u16),
        DType::BOOL => Tensor::scalar(number != 0),
        _ => Tensor::scalar(number),
    })
}

fn string(connection: &Connection, value: ValueRef<'_>) -> Result<Bytes> {
    match value {
        ValueRef::Null => Ok(Bytes::new()),
        ValueRef::Text(text) | ValueRef::Blob(text) => Ok(Bytes::copy_from_slice(text)),
        ValueRef::Integer(number) => Ok(number.to_string().into()),
        // As TensorFlow's SQLite writes numbers; newer ones write more digits.
        number => cast::<String>(connection, number, "SELECT printf('%!.15g', ?1)").map(Bytes::from),
    }
}

fn integer(connection: &Connection, value: ValueRef<'_>) -> Result<i64> {
    match value {
        ValueRef::Null => Ok(0),
        ValueRef::Integer(number) => Ok(number),
        other => cast(connection, other, "SELECT CAST(?1 AS INTEGER)"),
    }
}

fn double(connection: &Connection, value: ValueRef<'_>) -> Result<f64> {
    match value {
        ValueRef::Null => Ok(0.0),
        ValueRef::Integer(number) => Ok(number as f64),
        ValueRef::Real(number) => Ok(number),
        other => cast(connection, other, "SELECT CAST(?1 AS REAL)"),
    }
}

/// A value of another type, converted by the rules of SQLite.
fn cast<T: rusqlite::types::FromSql>(connection: &Connection, value: ValueRef<'_>, sql: &str) -> Result<T> {
    let converted = connection.prepare_cached(sql).and_then(|mut cast| {
        let value = rusqlite::types::ToSqlOutput::Borrowed(value);
        cast.query_row([value], |row| row.get(0))
    });
    converted.map_err(|error| failure(&error, "The value of a column could not be converted: ", ""))
}

/// An error of SQLite with TensorFlow's code and text.
fn failure(error: &SqlError, what: &str, query: &str) -> Error {
    let (code, message) = match error {
        SqlError::SqliteFailure(error, message) => (error.extended_code, message.clone()),
        SqlError::SqlInputError { error, msg, .. } => (error.extended_code, Some(msg.clone())),
        _ => (ffi::SQLITE_ERROR, None),
    };
    let message = message.unwrap_or_else(|| error.to_string());
    let text = match query {
        "" => format!("{what}{message}"),
        query => format!("{what}[{code}] {message}: {query}"),
    };
    Error::new(code_of(code), text)
}

/// The code for a result code of SQLite, whose lowest byte is its kind.
fn code_of(code: i32) -> Code {
    match code & 0xff {
        ffi::SQLITE_ABORT => Code::Aborted,
        ffi::SQLITE_READONLY | ffi::SQLITE_MISMATCH => Code::FailedPrecondition,
        ffi::SQLITE_MISUSE | ffi::SQLITE_INTERNAL => Code::Internal,
        ffi::SQLITE_RANGE => Code::OutOfRange,
        ffi::SQLITE_CANTOPEN | ffi::SQLITE_CONSTRAINT | ffi::SQLITE_NOTFOUND | ffi::SQLITE_NOTADB => {
            Code::InvalidArgument
        }
        ffi::SQLITE_CORRUPT => Code::DataLoss,
        ffi::SQLITE_AUTH | ffi::SQLITE_PERM => Code::PermissionDenied,
        ffi::SQLITE_FULL | ffi::SQLITE_TOOBIG | ffi::SQLITE_NOLFS => Code::ResourceExhausted,
        ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED | ffi::SQLITE_PROTOCOL | ffi::SQLITE_NOMEM => Code::Unavailable,
        ffi::SQLITE_INTERRUPT => Code::Cancelled,
        _ => Code::Unknown,
    }
}
