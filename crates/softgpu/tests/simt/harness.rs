//! A device small enough to hold in one hand: memory, a clock that jumps, and blocks run one after the other.

use std::sync::Arc;

use model::{Dim3, Nanos};
use softgpu::error::Fault;
use softgpu::lower;
use softgpu::memory::{AddressSpace, ContextId, DevicePointer, Unlimited};
use softgpu::simt::{Block, Clock, Launch, Module, Outcome, Output};

pub struct Device {
    pub space: Arc<AddressSpace>,
    pub module: Arc<Module>,
    pub output: Arc<Output>,
    pub clock: JumpingClock,
    /// Instructions a block may run before the next one gets a turn.
    pub budget: u32,
    pub dynamic_shared: u32,
    pub workspace: u64,
}

/// Time passes only when everyone sleeps, and by a nanosecond whenever someone looks.
#[derive(Default)]
pub struct JumpingClock {
    pub now: u64,
    pub looks: u64,
}

pub const EPOCH: u64 = 1_700_000_000_000_000_000;

impl Clock for JumpingClock {
    fn now(&mut self) -> Nanos {
        self.now += 1;
        self.looks += 1;
        Nanos(self.now)
    }

    fn wall(&mut self) -> Nanos {
        Nanos(EPOCH + self.now)
    }
}

pub enum Arg {
    U32(u32),
    U64(u64),
}

impl Device {
    pub fn new(text: &str) -> Device {
        Device::with_texts(&[text])
    }

    pub fn with_texts(texts: &[&str]) -> Device {
        let image = match lower::link(texts) {
            Ok(image) => image,
            Err(error) => panic!("{error}"),
        };
        let space = Arc::new(AddressSpace::new(1 << 30, Arc::new(Unlimited)).unwrap());
        let module = Module::load(Arc::new(image), &space, ContextId(1)).unwrap();
        let (output, clock) = (Arc::default(), JumpingClock::default());
        Device { space, module, output, clock, budget: 100_000, dynamic_shared: 0, workspace: 0 }
    }

    pub fn alloc(&self, bytes: usize) -> u64 {
        let DevicePointer(address) = self.space.allocate(ContextId(1), bytes.max(1) as u64).unwrap();
        self.space.write(address, &vec![0; bytes]).unwrap();
        address
    }

    pub fn upload<T: Copy>(&self, values: &[T], bytes: fn(&T) -> Vec<u8>) -> u64 {
        let all: Vec<u8> = values.iter().flat_map(bytes).collect();
        let address = self.alloc(all.len());
        self.space.write(address, &all).unwrap();
        address
    }

    pub fn upload_f32(&self, values: &[f32]) -> u64 {
        self.upload(values, |value| value.to_le_bytes().to_vec())
    }

    pub fn read_u32(&self, address: u64, count: usize) -> Vec<u32> {
        let mut bytes = vec![0; count * 4];
        self.space.read(address, &mut bytes).unwrap();
        bytes.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
    }

    pub fn read_u64(&self, address: u64, count: usize) -> Vec<u64> {
        let mut bytes = vec![0; count * 8];
        self.space.read(address, &mut bytes).unwrap();
        bytes.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect()
    }

    pub fn read_f32(&self, address: u64, count: usize) -> Vec<f32> {
        self.read_u32(address, count).into_iter().map(f32::from_bits).collect()
    }

    pub fn launch(&self, kernel: &str, grid: Dim3, block: Dim3, arguments: &[Arg]) -> Arc<Launch> {
        let kernel = self.module.kernel(kernel).expect("the kernel exists");
        let mut parameters = vec![0; kernel.parameter_bytes() as usize];
        assert_eq!(arguments.len(), kernel.parameters().len(), "one argument per parameter");
        for (argument, parameter) in arguments.iter().zip(kernel.parameters()) {
            let bytes = match argument {
                Arg::U32(value) => value.to_le_bytes().to_vec(),
                Arg::U64(value) => value.to_le_bytes().to_vec(),
            };
            parameters[parameter.offset as usize..][..bytes.len()].copy_from_slice(&bytes);
        }
        Arc::new(Launch {
            kernel,
            grid,
            block,
            dynamic_shared: self.dynamic_shared,
            parameters: parameters.into(),
            grid_workspace: self.workspace,
            grid_id: 7,
            sm_count: 4,
            sms: None,
            stack_limit: 64 << 10,
            output: Arc::clone(&self.output),
        })
    }

    /// Runs a grid with all of its blocks taking turns.
    pub fn try_run(&mut self, kernel: &str, grid: Dim3, block: Dim3, arguments: &[Arg]) -> Result<(), Fault> {
        let launch = self.launch(kernel, grid, block, arguments);
        let count = grid.volume().unwrap();
        let mut blocks: Vec<Option<Block>> = (0..count)
            .map(|index| {
                let mut block = Block::new(&launch, &self.space);
                block.start(index, (index % 4) as u32);
                Some(block)
            })
            .collect();
        for _ in 0..100_000 {
            let (mut moved, mut wakes) = (false, u64::MAX);
            for slot in &mut blocks {
                let Some(block) = slot else { continue };
                match block.run(&mut self.clock, self.budget) {
                    Outcome::Done => {
                        *slot = None;
                        moved = true;
                    }
                    Outcome::Runnable => moved = true,
                    Outcome::Sleeping { until } => wakes = wakes.min(until.0),
                    Outcome::Blocked => {}
                    Outcome::Faulted(report) => return Err(report.fault),
                }
            }
            if blocks.iter().all(Option::is_none) {
                return Ok(());
            }
            if !moved {
                assert!(wakes != u64::MAX, "{kernel}: everyone waits and nobody sleeps");
                self.clock.now = self.clock.now.max(wakes);
            }
        }
        panic!("{kernel} does not end");
    }

    pub fn run(&mut self, kernel: &str, grid: Dim3, block: Dim3, arguments: &[Arg]) {
        if let Err(fault) = self.try_run(kernel, grid, block, arguments) {
            panic!("{kernel}: {fault}");
        }
    }

    /// One block of `threads`.
    pub fn run1(&mut self, kernel: &str, threads: u32, arguments: &[Arg]) {
        self.run(kernel, Dim3::ONE, Dim3::new(threads, 1, 1), arguments);
    }
}

/// A module with one kernel `k` that writes the 32-bit register `%out` for its thread to `out[tid]`.
pub fn per_thread(body: &str) -> String {
    format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out)\n{{\n\
         .reg .pred %p<16>;\n.reg .b16 %h<32>;\n.reg .b32 %r<32>;\n.reg .f32 %f<32>;\n.reg .b64 %d<32>;\n\
         .reg .f64 %g<16>;\n.reg .b32 %out, %tid;\n.reg .b64 %address;\n\
         mov.u32 %tid, %tid.x;\nmov.b32 %out, 0;\n{body}\n\
         ld.param.u64 %address, [out];\nmul.wide.u32 %d31, %tid, 4;\nadd.s64 %address, %address, %d31;\n\
         st.global.b32 [%address], %out;\nret;\n}}\n"
    )
}

/// Runs such a kernel in one block and gives what the threads wrote.
pub fn eval(threads: u32, body: &str) -> Vec<u32> {
    let mut device = Device::new(&per_thread(body));
    let out = device.alloc(threads as usize * 4);
    device.run1("k", threads, &[Arg::U64(out)]);
    device.read_u32(out, threads as usize)
}

/// What one thread writes.
pub fn eval1(body: &str) -> u32 {
    eval(1, body)[0]
}
