//! Transfers between devices and tasks, and the arguments and results of functions.

use graph::RendezvousKeyPrefix;
use op::shapes::{none, unknown};
use op::{Flow, Grad, Kernel, Op, PLAIN, Setup, Transfer};
use status::Result;

pub(crate) const OPS: &[Op] = &[
    Op {
        def: "_Send(tensor: T); T: type; tensor_name: string; send_device: string; send_device_incarnation: int; \
              recv_device: string; client_terminated: bool = false; stateful",
        shape: none,
        grad: Grad::Stop,
        kernel: send,
        facts: PLAIN,
    },
    Op {
        def: "_HostSend(tensor: T); T: type; tensor_name: string; send_device: string; send_device_incarnation: int; \
              recv_device: string; client_terminated: bool = false; stateful",
        shape: none,
        grad: Grad::Stop,
        kernel: send,
        facts: PLAIN,
    },
    Op {
        def: "_Recv() -> tensor: tensor_type; tensor_type: type; tensor_name: string; send_device: string; \
              send_device_incarnation: int; recv_device: string; client_terminated: bool = false; stateful; distributed",
        shape: unknown,
        grad: Grad::Stop,
        kernel: recv,
        facts: PLAIN,
    },
    Op {
        def: "_HostRecv() -> tensor: tensor_type; tensor_type: type; tensor_name: string; send_device: string; \
              send_device_incarnation: int; recv_device: string; client_terminated: bool = false; stateful; distributed",
        shape: unknown,
        grad: Grad::Stop,
        kernel: recv,
        facts: PLAIN,
    },
    Op {
        def: "_Arg() -> output: T; T: type; index: int >= 0; stateful",
        shape: unknown,
        grad: Grad::Stop,
        kernel: arg,
        facts: PLAIN,
    },
    Op {
        def: "_Retval(input: T); T: type; index: int >= 0; stateful",
        shape: none,
        grad: Grad::Stop,
        kernel: ret,
        facts: PLAIN,
    },
];

fn send(setup: &Setup<'_>) -> Result<Kernel> {
    Ok(Kernel::flow(Flow::Send(transfer(setup)?)))
}

fn recv(setup: &Setup<'_>) -> Result<Kernel> {
    Ok(Kernel::flow(Flow::Recv(transfer(setup)?)))
}

fn transfer(setup: &Setup<'_>) -> Result<Transfer> {
    let (send, recv) = (setup.string("send_device")?, setup.string("recv_device")?);
    let (incarnation, name) = (setup.int("send_device_incarnation")? as u64, setup.string("tensor_name")?);
    let client_terminated = setup.bool("client_terminated")?;
    Ok(Transfer { key_prefix: RendezvousKeyPrefix::new(&send, incarnation, &recv, &name), client_terminated })
}

fn arg(setup: &Setup<'_>) -> Result<Kernel> {
    Ok(Kernel::flow(Flow::Arg(setup.int("index")?.max(0) as usize, setup.dtype("T")?)))
}

fn ret(setup: &Setup<'_>) -> Result<Kernel> {
    // The bound keeps a hostile index from determining the size of the list of results.
    let index = setup.int("index")?;
    if !(0..1 << 16).contains(&index) {
        return Err(status::invalid!("_Retval index {index} is out of range"));
    }
    Ok(Kernel::flow(Flow::Ret(index as usize)))
}
