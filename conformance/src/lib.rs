//! One suite for every `libcuda.so.1`.
//!
//! The suite is given the path of a driver library and runs real driver-API programs against it: kernels compiled
//! by nvcc from our own sources, whose results are compared with a reference computed on the CPU, and sequences of
//! calls whose answers a program relies on. Nothing here knows which driver it meets. The software GPU, the
//! NVIDIA driver and whatever stands in front of either must all pass the same cases; where they disagree, the
//! NVIDIA driver on a card is right by definition.
//!
//! The way of a case: [`suite`] lists it, [`runner`] starts a child process for it, the child opens the
//! [`driver`], makes a [`context`] and calls the case, and the child's exit status and last words become an
//! [`suite::Outcome`]. A process per case is not tidiness: an illegal address poisons a CUDA context, and
//! sometimes a process, for good; a case that crashes or hangs must cost only itself.
//!
//! | module | what it holds |
//! |---|---|
//! | [`driver`], [`answer`] | the library, its entry points as methods, and what they answer |
//! | [`context`], [`memory`], [`module`], [`stream`] | owned CUDA objects, freed when dropped |
//! | [`compare`], [`numbers`] | comparing results with a reference; reproducible inputs |
//! | [`suite`], [`runner`] | what a case is, the list of all, and how they are run |
//! | [`proc_addresses`], [`zeros`] | questions to a shim rather than programs: who answers to which name |
//! | [`cases`], [`breadth`] | the cases: behaviour of the API; kernels of many kinds |

pub mod answer;
pub mod breadth;
pub mod cases;
pub mod compare;
pub mod context;
pub mod driver;
pub mod memory;
pub mod module;
pub mod numbers;
pub mod proc_addresses;
pub mod runner;
pub mod stream;
pub mod suite;
pub mod zeros;
