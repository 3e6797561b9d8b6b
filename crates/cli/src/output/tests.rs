//! Which failures of standard output are quiet.

use super::*;

/// A destination whose every write fails in the same way.
struct Failing(io::ErrorKind);

impl Write for Failing {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(self.0.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn only_a_closed_pipe_is_quiet() {
    let mut lines = Vec::new();
    write_line(&mut lines, format_args!("{} nodes", 3)).unwrap();
    assert_eq!(lines, b"3 nodes\n");
    let error = write_line(&mut Failing(io::ErrorKind::BrokenPipe), format_args!("x")).unwrap_err();
    assert!(error.is::<ClosedPipe>());
    let error = write_line(&mut Failing(io::ErrorKind::StorageFull), format_args!("x")).unwrap_err();
    assert!(!error.is::<ClosedPipe>());
    assert!(error.to_string().contains("cannot write to standard output"));
}
