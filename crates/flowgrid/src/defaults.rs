//! Default graphs and sessions, for programs that are ported from Python.
//!
//! Each thread has a stack of default graphs and one of default sessions. A guard pushes to a stack when it is created
//! and pops when it is dropped. Nothing else in Flowgrid reads these stacks: passing graphs, scopes and sessions
//! explicitly is the preferred way.
//!
//! ```
//! use flowgrid::defaults::{AsDefault, default_graph, default_session};
//! use flowgrid::prelude::*;
//! use std::sync::Arc;
//!
//! fn build() -> Output {
//!     let graph = default_graph().expect("a default graph");
//!     graph.root().constant(2f32)
//! }
//!
//! let graph = Graph::new();
//! let _graph_guard = graph.as_default();
//! let two = build();
//! let session = Arc::new(Session::local(&graph));
//! let _session_guard = session.as_default();
//! let value: f32 = default_session().expect("a default session").run(&two)?;
//! assert_eq!(value, 2.0);
//! # Ok::<(), Error>(())
//! ```

use graph::Graph;
use session::Session;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::Arc;

thread_local! {
    static GRAPHS: RefCell<Vec<(u64, Graph)>> = const { RefCell::new(Vec::new()) };
    static SESSIONS: RefCell<Vec<(u64, Arc<Session>)>> = const { RefCell::new(Vec::new()) };
}

/// A value that can be the default of this thread.
pub trait AsDefault {
    /// Makes this the default until the guard is dropped; guards nest.
    fn as_default(&self) -> DefaultGuard;
}

/// Keeps a default in place while it lives. It stays on its thread.
#[must_use = "the default is removed when the guard is dropped"]
pub struct DefaultGuard {
    pop: fn(u64),
    number: u64,
    on_this_thread: PhantomData<*const ()>,
}

impl Drop for DefaultGuard {
    fn drop(&mut self) {
        (self.pop)(self.number);
    }
}

impl AsDefault for Graph {
    fn as_default(&self) -> DefaultGuard {
        let number = GRAPHS.with_borrow_mut(|stack| push(stack, self.clone()));
        // The entry is dropped after the stack is released, since dropping it may run other code.
        let pop = |number| drop(GRAPHS.with_borrow_mut(|stack| remove(stack, number)));
        DefaultGuard { pop, number, on_this_thread: PhantomData }
    }
}

impl AsDefault for Arc<Session> {
    fn as_default(&self) -> DefaultGuard {
        let number = SESSIONS.with_borrow_mut(|stack| push(stack, self.clone()));
        let pop = |number| drop(SESSIONS.with_borrow_mut(|stack| remove(stack, number)));
        DefaultGuard { pop, number, on_this_thread: PhantomData }
    }
}

/// The graph of the innermost guard of this thread.
pub fn default_graph() -> Option<Graph> {
    GRAPHS.with_borrow(|stack| stack.last().map(|(_, graph)| graph.clone()))
}

/// The session of the innermost guard of this thread.
pub fn default_session() -> Option<Arc<Session>> {
    SESSIONS.with_borrow(|stack| stack.last().map(|(_, session)| session.clone()))
}

fn push<T>(stack: &mut Vec<(u64, T)>, value: T) -> u64 {
    let number = stack.last().map_or(0, |(last, _)| last + 1);
    stack.push((number, value));
    number
}

/// Guards may be dropped in any order, so an entry is found by its number.
fn remove<T>(stack: &mut Vec<(u64, T)>, number: u64) -> Option<T> {
    let place = stack.iter().position(|(own, _)| *own == number)?;
    Some(stack.remove(place).1)
}

#[cfg(test)]
mod tests {
    use super::{AsDefault, default_graph, default_session};
    use crate::prelude::*;
    use std::sync::Arc;

    #[test]
    fn guards_nest_and_belong_to_one_thread() {
        assert!(default_graph().is_none());
        let (outer, inner) = (Graph::new(), Graph::new());
        let outer_guard = outer.as_default();
        let inner_guard = inner.as_default();
        assert!(default_graph().is_some_and(|graph| graph.is_same(&inner)));
        assert!(std::thread::spawn(|| default_graph().is_none()).join().unwrap());
        drop(inner_guard);
        assert!(default_graph().is_some_and(|graph| graph.is_same(&outer)));
        drop(outer_guard);
        assert!(default_graph().is_none());
    }

    #[test]
    fn guards_may_be_dropped_out_of_order() {
        let (outer, inner) = (Graph::new(), Graph::new());
        let outer_guard = outer.as_default();
        let _inner_guard = inner.as_default();
        drop(outer_guard);
        assert!(default_graph().is_some_and(|graph| graph.is_same(&inner)));
    }

    #[test]
    fn sessions_have_a_stack_of_their_own() {
        let graph = Graph::new();
        let three = graph.root().constant(3f32);
        let (outer, inner) = (Arc::new(Session::local(&graph)), Arc::new(Session::local(&graph)));
        let outer_guard = outer.as_default();
        let graph_guard = graph.as_default();
        let inner_guard = inner.as_default();
        drop(graph_guard);
        assert!(default_session().is_some_and(|session| Arc::ptr_eq(&session, &inner)));
        drop(inner_guard);
        assert_eq!(default_session().map(|session| session.run::<f32>(&three)), Some(Ok(3.0)));
        assert!(default_session().is_some_and(|session| Arc::ptr_eq(&session, &outer)));
        drop(outer_guard);
        assert!(default_session().is_none() && default_graph().is_none());
    }
}
