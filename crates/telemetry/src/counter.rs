//! What is counted.
//!
//! A counter has a place in the ledger (its number) and a name in reports (`launches.plain.default`). The numbers
//! belong to the layout's version: change the list, and change `layout::VERSION`.

macro_rules! counters {
    ($($variant:ident = $name:literal,)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u16)]
        pub enum Counter { $($variant,)* }

        impl Counter {
            pub const ALL: &[Counter] = &[$(Counter::$variant,)*];
            const NAMES: &[&str] = &[$($name,)*];
        }
    };
}

counters! {
    PlainOnDefault = "launches.plain.default",
    PlainOnPerThread = "launches.plain.per_thread",
    PlainOnCreated = "launches.plain.created",
    ExtendedOnDefault = "launches.extended.default",
    ExtendedOnPerThread = "launches.extended.per_thread",
    ExtendedOnCreated = "launches.extended.created",
    CooperativeOnDefault = "launches.cooperative.default",
    CooperativeOnPerThread = "launches.cooperative.per_thread",
    CooperativeOnCreated = "launches.cooperative.created",
    GraphOnDefault = "launches.graph.default",
    GraphOnPerThread = "launches.graph.per_thread",
    GraphOnCreated = "launches.graph.created",
    HostFunctionOnDefault = "launches.host_function.default",
    HostFunctionOnPerThread = "launches.host_function.per_thread",
    HostFunctionOnCreated = "launches.host_function.created",

    KernelsInGraphs = "kernels.in_graphs",
    KernelsCaptured = "kernels.captured",
    KernelsUnknown = "kernels.unknown",
    KernelsUnlisted = "kernels.unlisted",
    LaunchesRefused = "launches_refused",

    ModulesPtx = "modules.ptx",
    ModulesCubin = "modules.cubin",
    ModulesFatbin = "modules.fatbin",
    ModulesOther = "modules.other",
    ModulesUnloaded = "modules_unloaded",
    LinksCompleted = "links_completed",
    FunctionsFound = "functions.of_modules",
    KernelsFound = "functions.of_libraries",
    FunctionsEnumerated = "functions.enumerated",

    CapturesBegun = "graphs.captures",
    GraphsInstantiated = "graphs.instantiated",
    GraphsUpdated = "graphs.updated",

    StreamsCreated = "streams.created",
    StreamsDestroyed = "streams.destroyed",
    EventsCreated = "events.created",
    EventsDestroyed = "events.destroyed",
    EventsRecorded = "events.recorded",
    EventsAwaited = "events.awaited_by_streams",
    MemoryOperations = "stream_memory_operations",

    CopiesHostToDevice = "copies.host_to_device.count",
    CopiesDeviceToHost = "copies.device_to_host.count",
    CopiesDeviceToDevice = "copies.device_to_device.count",
    CopiesOther = "copies.other.count",
    CopiedHostToDevice = "copies.host_to_device.bytes",
    CopiedDeviceToHost = "copies.device_to_host.bytes",
    CopiedDeviceToDevice = "copies.device_to_device.bytes",
    CopiedOther = "copies.other.bytes",
    Fills = "fills.count",
    Filled = "fills.bytes",

    AllocationsDevice = "allocations.device.count",
    AllocationsStreamOrdered = "allocations.stream_ordered.count",
    AllocationsVirtual = "allocations.virtual.count",
    AllocationsManaged = "allocations.managed.count",
    AllocationsHost = "allocations.host.count",
    AllocatedDevice = "allocations.device.bytes",
    AllocatedStreamOrdered = "allocations.stream_ordered.bytes",
    AllocatedVirtual = "allocations.virtual.bytes",
    AllocatedManaged = "allocations.managed.bytes",
    AllocatedHost = "allocations.host.bytes",
    AllocationsRefused = "allocations_refused",
    AllocationsDenied = "allocations_denied",
    Frees = "frees",
    PoolsCreated = "memory_pools_created",
    AddressesReserved = "virtual_memory.reservations",
    MemoryMapped = "virtual_memory.mappings",

    ContextSynchronisations = "synchronisations.context",
    StreamSynchronisations = "synchronisations.stream",
    EventSynchronisations = "synchronisations.event",
    Queries = "queries",

    ContextsCreated = "contexts.created",
    ContextsDestroyed = "contexts.destroyed",
    PrimaryContextsRetained = "contexts.primary_retained",
    PrimaryContextsReleased = "contexts.primary_released",

    GuardStops = "guard.stops",
    GuardMidGrid = "guard.mid_grid",
    GuardWhole = "guard.whole",
    GuardRelaunched = "guard.relaunched",
    GuardConfined = "guard.confined",
    GuardRounds = "guard.rounds",
    GuardWatchdog = "guard.watchdog",
    GuardBroken = "guard.certificates_broken",

    FunctionsAsked = "proc_addresses.asked",
    FunctionsForeign = "proc_addresses.given_unwatched",
    ExportTables = "export_tables_asked",
    PathsRedirected = "absolute_opens_redirected",
}

impl Counter {
    pub const COUNT: usize = Counter::ALL.len();

    /// As reports call it: words between points, from the general to the particular.
    pub fn name(self) -> &'static str {
        Counter::NAMES[self as usize]
    }

    pub fn launches(kind: LaunchKind, stream: StreamKind) -> Counter {
        Counter::ALL[kind as usize * StreamKind::ALL.len() + stream as usize]
    }

    pub fn modules(kind: ModuleKind) -> Counter {
        match kind {
            ModuleKind::Ptx => Counter::ModulesPtx,
            ModuleKind::Cubin => Counter::ModulesCubin,
            ModuleKind::Fatbin => Counter::ModulesFatbin,
            ModuleKind::Other => Counter::ModulesOther,
        }
    }

    /// How many, and how many bytes.
    pub fn allocations(kind: AllocationKind) -> (Counter, Counter) {
        match kind {
            AllocationKind::Device => (Counter::AllocationsDevice, Counter::AllocatedDevice),
            AllocationKind::StreamOrdered => {
                (Counter::AllocationsStreamOrdered, Counter::AllocatedStreamOrdered)
            }
            AllocationKind::Virtual => (Counter::AllocationsVirtual, Counter::AllocatedVirtual),
            AllocationKind::Managed => (Counter::AllocationsManaged, Counter::AllocatedManaged),
            AllocationKind::Host => (Counter::AllocationsHost, Counter::AllocatedHost),
        }
    }

    /// How many, and how many bytes.
    pub fn copies(kind: CopyKind) -> (Counter, Counter) {
        match kind {
            CopyKind::HostToDevice => (Counter::CopiesHostToDevice, Counter::CopiedHostToDevice),
            CopyKind::DeviceToHost => (Counter::CopiesDeviceToHost, Counter::CopiedDeviceToHost),
            CopyKind::DeviceToDevice => (Counter::CopiesDeviceToDevice, Counter::CopiedDeviceToDevice),
            CopyKind::Other => (Counter::CopiesOther, Counter::CopiedOther),
        }
    }
}

/// How work was handed to a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaunchKind {
    Plain,
    /// With attributes: `cuLaunchKernelEx`.
    Extended,
    Cooperative,
    /// A whole graph.
    Graph,
    /// A function of the host, in stream order.
    HostFunction,
}

impl LaunchKind {
    pub const ALL: [LaunchKind; 5] = [
        LaunchKind::Plain,
        LaunchKind::Extended,
        LaunchKind::Cooperative,
        LaunchKind::Graph,
        LaunchKind::HostFunction,
    ];
}

/// Which stream: the default one of the context, the default one of the thread, or one that was created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamKind {
    Default,
    PerThread,
    Created,
}

impl StreamKind {
    pub const ALL: [StreamKind; 3] = [StreamKind::Default, StreamKind::PerThread, StreamKind::Created];
}

/// What a module was made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModuleKind {
    Ptx,
    Cubin,
    Fatbin,
    /// An archive, an intermediate form, or what could not be read.
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllocationKind {
    Device,
    /// From a memory pool, in stream order.
    StreamOrdered,
    /// Physical memory for mapping.
    Virtual,
    Managed,
    /// Page-locked memory of the host.
    Host,
}

impl AllocationKind {
    pub const ALL: [AllocationKind; 5] = [
        AllocationKind::Device,
        AllocationKind::StreamOrdered,
        AllocationKind::Virtual,
        AllocationKind::Managed,
        AllocationKind::Host,
    ];
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyKind {
    HostToDevice,
    DeviceToHost,
    DeviceToDevice,
    /// Where the addresses alone say which way it goes.
    Other,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_counter_has_a_name_of_its_own() {
        let names: BTreeSet<&str> = Counter::ALL.iter().map(|counter| counter.name()).collect();
        assert_eq!(names.len(), Counter::COUNT);
    }

    #[test]
    fn a_launch_is_found_by_its_kind_and_stream() {
        let counter = Counter::launches(LaunchKind::Graph, StreamKind::PerThread);
        assert_eq!(counter, Counter::GraphOnPerThread);
        let last = Counter::launches(LaunchKind::HostFunction, StreamKind::Created);
        assert_eq!(last.name(), "launches.host_function.created");
    }
}
