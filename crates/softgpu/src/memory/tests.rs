use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;

const ME: ContextId = ContextId(1);
const WINDOW: u64 = 64 << 20;

fn space() -> AddressSpace {
    AddressSpace::new(WINDOW, Arc::new(Unlimited)).unwrap()
}

/// A capacity that keeps count.
struct Capacity {
    left: AtomicU64,
}

impl Capacity {
    fn of(bytes: u64) -> Arc<Capacity> {
        Arc::new(Capacity { left: AtomicU64::new(bytes) })
    }

    fn left(&self) -> u64 {
        self.left.load(Ordering::Relaxed)
    }
}

impl Quota for Capacity {
    fn charge(&self, bytes: u64) -> bool {
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes)).is_ok()
    }

    fn refund(&self, bytes: u64) {
        self.left.fetch_add(bytes, Ordering::Relaxed);
    }
}

fn put(space: &AddressSpace, address: u64, bytes: &[u8]) -> Result<(), Error> {
    space.copy(address, bytes.as_ptr().expose_provenance() as u64, bytes.len() as u64)
}

fn get(space: &AddressSpace, address: u64, bytes: usize) -> Result<Vec<u8>, Error> {
    let mut out = vec![0; bytes];
    space.copy(out.as_mut_ptr().expose_provenance() as u64, address, bytes as u64)?;
    Ok(out)
}

#[test]
fn a_region_is_freed_once_whoever_has_its_place_now() {
    let space = space();
    let first = space.allocate(ME, 100).unwrap();
    let region = space.lookup(first.0).unwrap();
    space.free(first).unwrap();
    let second = space.allocate(ContextId(2), 100).unwrap();
    assert_eq!(first, second, "the place is used again");
    assert!(space.free_region(&region).is_err());
    let region = space.lookup(second.0).unwrap();
    space.free_region(&region).unwrap();
    assert!(space.lookup(second.0).is_none());
}

#[test]
fn an_access_may_not_leave_its_granules() {
    let space = space();
    let a = space.allocate(ME, GRANULE + 1).unwrap().0;
    let end = a + 2 * GRANULE;
    for len in [1, 2, 4, 8, 16] {
        assert!(space.translate(a, len, Access::Read).is_some());
        assert!(space.translate(a + GRANULE - 1, len, Access::Atomic).is_some(), "both granules are there");
        assert!(space.translate(end - u64::from(len), len, Access::Write).is_some());
        assert!(space.translate(end - u64::from(len) + 1, len, Access::Read).is_none());
        assert!(space.translate(end, len, Access::Read).is_none());
        assert!(space.translate(a - 1, len, Access::Read).is_none());
    }
}

#[test]
fn addresses_of_nothing_are_refused() {
    let space = space();
    let a = space.allocate(ME, 8).unwrap().0;
    let windows = [space.shared_window(), space.local_window(), space.local_window() + GENERIC_WINDOW - 1];
    for address in [0, 1, u64::MAX, u64::MAX - 15, a - GRANULE, 1 << 47].into_iter().chain(windows) {
        assert!(space.translate(address, 16, Access::Read).is_none(), "{address:#x}");
        assert!(put(&space, address.max(1), &[]).is_ok());
    }
    assert!(matches!(put(&space, 0, &[1]), Err(Error::Inaccessible { .. })));
    assert!(matches!(put(&space, space.shared_window(), &[1]), Err(Error::Inaccessible { .. })));
}

#[test]
fn the_host_cannot_collide_with_the_device() {
    let space = space();
    let a = space.allocate(ME, 100).unwrap().0;
    let boxed = Box::new([0u8; 64]);
    assert!(space.lookup(boxed.as_ptr().expose_provenance() as u64).is_none());
    assert_ne!(space.translate(a, 1, Access::Read).unwrap().addr() as u64, a);
}

#[test]
fn memory_holds_what_was_copied() {
    let space = space();
    let a = space.allocate(ME, 1000).unwrap().0;
    let b = space.allocate(ME, 1000).unwrap().0;
    let data: Vec<u8> = (0..1000).map(|i| (i % 251) as u8).collect();
    put(&space, a, &data).unwrap();
    space.copy(b, a, 1000).unwrap();
    assert_eq!(get(&space, b, 1000).unwrap(), data);
    // Overlapping, as memmove.
    space.copy(b + 1, b, 999).unwrap();
    assert_eq!(get(&space, b + 1, 999).unwrap(), data[..999]);
}

#[test]
fn words_are_copied_and_filled_wherever_they_lie() {
    let space = space();
    let (a, b) = (space.allocate(ME, 64).unwrap().0, space.allocate(ME, 64).unwrap().0);
    let data: Vec<u8> = (1..=64).collect();
    for (bytes, to, from) in (1..=9).flat_map(|bytes| (0..9).map(move |at| (bytes, at, (at * 5) % 9))) {
        put(&space, a, &data).unwrap();
        put(&space, b, &[0; 64]).unwrap();
        space.copy(b + to, a + from, bytes).unwrap();
        let mut want = vec![0; 64];
        want[to as usize..][..bytes as usize].copy_from_slice(&data[from as usize..][..bytes as usize]);
        assert_eq!(get(&space, b, 64).unwrap(), want, "{bytes} bytes to {to} from {from}");
    }
    for (pattern, unit) in [
        (Pattern::One(0xab), &[0xab][..]),
        (Pattern::Two(0x1234), &[0x34, 0x12]),
        (Pattern::Four(0x1234_5678), &[0x78, 0x56, 0x34, 0x12]),
        (Pattern::Four(0), &[0; 4]),
    ] {
        for elements in 1..=9 {
            put(&space, b, &[0xee; 64]).unwrap();
            space.fill(&Fill { to: b, pitch: 0, pattern, width: elements, height: 1 }).unwrap();
            let mut want = unit.repeat(elements as usize);
            want.resize(64, 0xee);
            assert_eq!(get(&space, b, 64).unwrap(), want, "{elements} of {pattern:?}");
        }
    }
}

#[test]
fn bytes_are_written_and_read() {
    let space = space();
    let a = space.allocate(ME, GRANULE).unwrap().0;
    space.write(a + 3, b"text").unwrap();
    let mut text = [0; 4];
    space.read(a + 3, &mut text).unwrap();
    assert_eq!(&text, b"text");
    assert!(space.write(a + GRANULE - 1, b"xy").is_err());
    assert!(space.read(a + GRANULE, &mut text).is_err());
    assert!(
        space.read(text.as_ptr().expose_provenance() as u64, &mut text).is_err(),
        "the host's is not the device's"
    );
}

#[test]
fn words_are_aligned_and_checked() {
    let space = space();
    let a = space.allocate(ME, GRANULE).unwrap().0;
    space.store_word(a + 8, Word::Eight, u64::MAX - 1).unwrap();
    assert_eq!(space.load_word(a + 8, Word::Eight).unwrap(), u64::MAX - 1);
    space.store_word(a + 8, Word::Four, u64::MAX).unwrap();
    assert_eq!(space.load_word(a + 8, Word::Eight).unwrap(), u64::MAX);
    assert_eq!(space.load_word(a + 12, Word::Four).unwrap(), u64::from(u32::MAX));
    assert!(space.load_word(a + 12, Word::Eight).is_err());
    assert!(space.store_word(a + GRANULE, Word::Four, 0).is_err());
}

#[test]
fn copies_are_checked_to_the_last_granule() {
    let space = space();
    let a = space.allocate(ME, GRANULE).unwrap().0;
    let data = vec![7; GRANULE as usize + 1];
    assert!(matches!(put(&space, a, &data), Err(Error::Inaccessible { .. })));
    assert_eq!(get(&space, a, 1).unwrap(), [0], "nothing was copied");
    assert!(matches!(
        space.copy(a, a, u64::MAX),
        Err(Error::InvalidSize { .. } | Error::Inaccessible { .. })
    ));
    assert!(matches!(space.copy(a, a, 1 << 45), Err(Error::Inaccessible { .. })));
    let below = space.front - 8;
    assert!(matches!(space.copy(a, below, 64), Err(Error::Inaccessible { .. })), "runs into the window");
}

#[test]
fn pitched_copies_and_fills() {
    let space = space();
    let a = space.allocate(ME, GRANULE).unwrap().0;
    let rows: Vec<u8> = (0..12).collect();
    let from = rows.as_ptr().expose_provenance() as u64;
    let copy = Copy2D { to: a, to_pitch: 16, from, from_pitch: 4, width: 4, height: 3 };
    space.copy_2d(&copy).unwrap();
    assert_eq!(get(&space, a + 32, 5).unwrap(), [8, 9, 10, 11, 0]);
    let cube = Copy3D { plane: Copy2D { height: 1, ..copy }, to_slice: 64, from_slice: 8, depth: 2 };
    space.copy_3d(&cube).unwrap();
    assert_eq!(get(&space, a + 64, 4).unwrap(), [8, 9, 10, 11]);
    assert!(space.copy_2d(&Copy2D { to_pitch: u64::MAX, ..copy }).is_err());
    assert!(space.copy_2d(&Copy2D { to_pitch: GRANULE / 2, ..copy }).is_err(), "the third row is outside");

    let fill = Fill { to: a, pitch: 16, pattern: Pattern::Two(0x1234), width: 3, height: 2 };
    space.fill(&fill).unwrap();
    assert_eq!(get(&space, a + 16, 7).unwrap(), [0x34, 0x12, 0x34, 0x12, 0x34, 0x12, 0]);
    let whole =
        Fill { pattern: Pattern::Four(0x0102_0304), width: GRANULE / 4, pitch: GRANULE, height: 1, to: a };
    space.fill(&whole).unwrap();
    assert_eq!(get(&space, a + GRANULE - 4, 4).unwrap(), [4, 3, 2, 1]);
    space.fill(&Fill { pattern: Pattern::One(9), width: GRANULE, ..whole }).unwrap();
    assert_eq!(get(&space, a + GRANULE - 1, 1).unwrap(), [9]);
    assert!(space.fill(&Fill { width: GRANULE / 4 + 1, ..whole }).is_err());
    assert!(space.fill(&Fill { width: u64::MAX, ..whole }).is_err());
    assert!(space.fill(&Fill { height: u64::MAX, ..whole }).is_err());
}

#[test]
fn hostile_sizes_are_refused() {
    let space = space();
    for bytes in [0, u64::MAX, u64::MAX - GRANULE + 1] {
        assert!(matches!(
            space.allocate(ME, bytes),
            Err(Error::InvalidSize { .. } | Error::OutOfMemory { .. })
        ));
        assert!(space.allocate_host(ME, bytes).is_err());
        assert!(space.allocate_managed(ME, bytes).is_err());
        assert!(space.reserve(ME, bytes, 0, None).is_err());
        assert!(space.create(bytes, false).is_err());
        assert!(space.register(ME, 4096, bytes, false).is_err());
    }
    assert!(space.reserve(ME, LARGE_GRANULE, 3 << 21, None).is_err(), "an alignment that is no power of two");
    assert!(space.reserve(ME, LARGE_GRANULE, 1 << 63, None).is_err());
    assert!(AddressSpace::new(u64::MAX, Arc::new(Unlimited)).is_err());
    assert!(AddressSpace::new(0, Arc::new(Unlimited)).is_ok());
}

#[test]
fn freeing_twice_or_in_the_middle_is_an_error() {
    let space = space();
    let a = space.allocate(ME, 100).unwrap();
    assert!(matches!(space.free(DevicePointer(a.0 + 1)), Err(Error::InvalidAddress { .. })));
    assert!(matches!(space.free_host(a), Err(Error::InvalidAddress { .. })));
    space.free(a).unwrap();
    assert!(matches!(space.free(a), Err(Error::InvalidAddress { .. })));
    assert!(space.translate(a.0, 1, Access::Read).is_none());
    assert!(space.free(DevicePointer(0)).is_err());
}

#[test]
fn freed_memory_is_used_again_and_comes_back_zeroed() {
    let space = space();
    let pieces: Vec<DevicePointer> = (0..64).map(|_| space.allocate(ME, 3 * GRANULE / 2).unwrap()).collect();
    for piece in pieces.iter().step_by(2) {
        put(&space, piece.0, &[1; 100]).unwrap();
        space.free(*piece).unwrap();
    }
    let again = space.allocate(ME, 2 * GRANULE).unwrap();
    assert!(pieces.iter().step_by(2).any(|piece| *piece == again), "a hole of the right size is taken first");
    assert_eq!(get(&space, again.0, 100).unwrap(), [0; 100]);
    for piece in pieces.iter().skip(1).step_by(2) {
        space.free(*piece).unwrap();
    }
    space.free(again).unwrap();
    assert!(space.allocate(ME, WINDOW - LARGE_GRANULE).is_ok(), "no fragment is left over");
}

#[test]
fn the_window_can_be_exhausted_and_recovers() {
    let space = space();
    assert!(matches!(space.allocate(ME, 2 * WINDOW), Err(Error::OutOfMemory { .. })));
    let most = space.allocate(ME, WINDOW - LARGE_GRANULE).unwrap();
    assert!(matches!(space.allocate(ME, LARGE_GRANULE), Err(Error::OutOfMemory { .. })));
    space.free(most).unwrap();
    space.allocate(ME, LARGE_GRANULE).unwrap();
}

#[test]
fn physical_memory_is_charged_and_refunded() {
    let capacity = Capacity::of(4 * GRANULE);
    let space = AddressSpace::new(WINDOW, capacity.clone()).unwrap();
    let a = space.allocate(ME, GRANULE + 1).unwrap();
    assert_eq!(capacity.left(), 2 * GRANULE);
    assert!(matches!(space.allocate(ME, 3 * GRANULE), Err(Error::OutOfMemory { .. })));
    assert!(matches!(space.create(3 * GRANULE, true), Err(Error::OutOfMemory { .. })));
    let physical = space.create(2 * GRANULE, false).unwrap();
    assert_eq!(capacity.left(), 0);
    space.reserve(ME, LARGE_GRANULE, 0, None).unwrap();
    space.allocate_host(ME, 100 * GRANULE).unwrap();
    assert_eq!(capacity.left(), 0, "addresses and host memory cost nothing");
    space.release(physical).unwrap();
    space.free(a).unwrap();
    assert_eq!(capacity.left(), 4 * GRANULE);
    space.allocate(ME, 1).unwrap();
    drop(space);
    assert_eq!(capacity.left(), 4 * GRANULE, "a space that goes gives everything back");
}

#[test]
fn a_context_takes_its_memory_along() {
    let capacity = Capacity::of(WINDOW);
    let space = AddressSpace::new(WINDOW, capacity.clone()).unwrap();
    let mine = space.allocate(ME, 1).unwrap();
    let other = space.allocate(ContextId(2), 1).unwrap();
    space.allocate_host(ME, 1).unwrap();
    let host = [0u8; 100];
    let host_address = host.as_ptr().expose_provenance() as u64;
    space.register(ME, host_address, 100, false).unwrap();
    space.free_owned(ME).unwrap();
    assert!(space.lookup(mine.0).is_none());
    assert!(space.lookup(host_address).is_none());
    assert!(space.lookup(other.0).is_some());
    assert_eq!(capacity.left(), WINDOW - GRANULE);
}

#[test]
fn host_memory_is_one_memory_for_both_sides() {
    let space = space();
    for managed in [false, true] {
        let allocated = if managed { space.allocate_managed(ME, 100) } else { space.allocate_host(ME, 100) };
        let host = allocated.unwrap();
        let seen_by_host: *mut u8 = ptr::with_exposed_provenance_mut(host.0 as usize + 5);
        // SAFETY: host memory of ours is writable at its own address.
        unsafe { seen_by_host.write_volatile(42) };
        assert_eq!(get(&space, host.0, 6).unwrap()[5], 42);
        let seen_by_device = space.translate(host.0 + 5, 1, Access::Atomic).unwrap();
        // SAFETY: `translate` gave the place of one byte.
        unsafe { seen_by_device.write_volatile(43) };
        // SAFETY: as above.
        assert_eq!(unsafe { seen_by_host.read_volatile() }, 43);
        let kind = space.lookup(host.0 + 99).unwrap().kind;
        assert_eq!(kind, if managed { RegionKind::Managed } else { RegionKind::Pinned });
        if managed {
            space.free(host).unwrap()
        } else {
            space.free_host(host).unwrap()
        }
        assert!(space.translate(host.0, 1, Access::Read).is_none());
    }
}

#[test]
fn registered_memory_is_reached_where_it_lies() {
    let space = space();
    let mut host = vec![0u8; 300];
    let start = host.as_mut_ptr().expose_provenance() as u64;
    assert!(space.translate(start, 1, Access::Read).is_none());
    space.register(ME, start + 100, 100, false).unwrap();
    space.register(ME, start + 200, 100, true).unwrap();
    assert!(matches!(space.register(ME, start + 50, 51, false), Err(Error::AlreadyRegistered { .. })));
    assert!(matches!(space.register(ME, start + 150, 1, false), Err(Error::AlreadyRegistered { .. })));
    assert_eq!(space.translate(start + 100, 4, Access::Write).unwrap().addr() as u64, start + 100);
    assert!(space.translate(start + 99, 1, Access::Read).is_none());
    assert!(space.translate(start + 197, 4, Access::Read).is_none(), "across two registrations");
    assert!(space.translate(start + 200, 1, Access::Read).is_some());
    assert!(space.translate(start + 200, 1, Access::Write).is_none(), "registered for reading");
    assert!(space.translate(start + 299, 2, Access::Read).is_none());
    assert_eq!(space.lookup(start + 250).unwrap().kind, RegionKind::Registered);
    assert!(matches!(space.unregister(start + 101), Err(Error::NotRegistered { .. })));
    space.unregister(start + 100).unwrap();
    assert!(space.translate(start + 100, 1, Access::Read).is_none());
    let device = space.allocate(ME, 1).unwrap().0;
    assert!(space.register(ME, device, 1, false).is_err(), "device memory is not the host's to lend");
    assert!(space.register(ME, 0, 1, false).is_err());
}

#[test]
fn two_addresses_can_share_memory() {
    let space = space();
    let va = space.reserve(ME, 4 * LARGE_GRANULE, 0, None).unwrap();
    let (one, two) = (va, DevicePointer(va.0 + 2 * LARGE_GRANULE));
    let physical = space.create(LARGE_GRANULE, false).unwrap();
    space.map(one, LARGE_GRANULE, physical, 0).unwrap();
    space.map(two, LARGE_GRANULE, physical, 0).unwrap();
    assert!(space.translate(one.0, 1, Access::Read).is_none(), "nobody was given access yet");
    space.set_access(one, LARGE_GRANULE, Protection::ReadWrite).unwrap();
    space.set_access(two, LARGE_GRANULE, Protection::Read).unwrap();
    put(&space, one.0 + 17, b"alias").unwrap();
    assert_eq!(get(&space, two.0 + 17, 5).unwrap(), b"alias");
    assert!(matches!(put(&space, two.0, b"no"), Err(Error::Inaccessible { .. })), "read-only");
    assert_eq!(space.access(two.0 + 1), Some(Protection::Read));

    space.release(physical).unwrap();
    assert!(matches!(space.release(physical), Err(Error::UnknownPhysical)));
    space.unmap(one, LARGE_GRANULE).unwrap();
    assert_eq!(get(&space, two.0 + 17, 5).unwrap(), b"alias", "lives as long as a mapping");
    assert!(space.translate(one.0, 1, Access::Read).is_none());
    let retained = space.retain(two.0 + 100).unwrap();
    assert_eq!(retained, physical);
    space.unmap(two, LARGE_GRANULE).unwrap();
    space.map(one, LARGE_GRANULE, retained, 0).unwrap();
    space.set_access(one, LARGE_GRANULE, Protection::Read).unwrap();
    assert_eq!(get(&space, one.0 + 17, 5).unwrap(), b"alias", "lives as long as a handle");
}

#[test]
fn mappings_are_made_and_undone_whole() {
    let space = space();
    let va = space.reserve(ME, 2 * LARGE_GRANULE, 0, None).unwrap();
    let at = |offset: u64| DevicePointer(va.0 + offset);
    let physical = space.create(LARGE_GRANULE, false).unwrap();
    assert!(space.map(at(0), 2 * LARGE_GRANULE, physical, 0).is_err(), "more than there is");
    assert!(space.map(at(0), GRANULE, physical, LARGE_GRANULE).is_err());
    assert!(space.map(at(1), GRANULE, physical, 0).is_err());
    assert!(
        space.map(at(2 * LARGE_GRANULE - GRANULE), 2 * GRANULE, physical, 0).is_err(),
        "leaves the reservation"
    );
    assert!(space.map(at(0), GRANULE, PhysicalId(999), 0).is_err());
    assert!(space.map(DevicePointer(4096), GRANULE, physical, 0).is_err());
    space.map(at(0), GRANULE, physical, GRANULE).unwrap();
    space.map(at(GRANULE), 2 * GRANULE, physical, 0).unwrap();
    assert!(space.map(at(2 * GRANULE), GRANULE, physical, 0).is_err(), "mapped already");
    assert!(space.set_access(at(0), 2 * GRANULE, Protection::Read).is_err(), "half a mapping");
    assert!(space.set_access(at(0), 4 * GRANULE, Protection::Read).is_err());
    space.set_access(at(0), 3 * GRANULE, Protection::ReadWrite).unwrap();
    put(&space, va.0, b"x").unwrap();
    assert_eq!(get(&space, va.0 + 2 * GRANULE, 1).unwrap(), b"x", "granule 1 of the memory is mapped twice");
    assert!(space.unmap(at(0), 2 * GRANULE).is_err());
    assert!(space.unmap(at(0), 0).is_err());
    assert!(space.unreserve(va, 2 * LARGE_GRANULE).is_err(), "still mapped");
    space.unmap(at(0), 3 * GRANULE).unwrap();
    assert!(space.unreserve(va, LARGE_GRANULE).is_err());
    space.unreserve(va, 2 * LARGE_GRANULE).unwrap();
    assert!(space.unreserve(va, 2 * LARGE_GRANULE).is_err());
}

#[test]
fn a_reservation_takes_its_hint_and_its_alignment() {
    let space = space();
    let first = space.reserve(ME, LARGE_GRANULE, 0, None).unwrap();
    let hint = first.0 + 8 * LARGE_GRANULE;
    assert_eq!(space.reserve(ME, LARGE_GRANULE, 0, Some(hint)).unwrap().0, hint);
    assert_ne!(space.reserve(ME, LARGE_GRANULE, 0, Some(hint)).unwrap().0, hint, "taken");
    let aligned = space.reserve(ME, LARGE_GRANULE, 16 << 20, None).unwrap();
    assert_eq!(aligned.0 % (16 << 20), 0);
    assert_eq!(space.lookup(aligned.0).unwrap().kind, RegionKind::Reserved);
}

#[test]
fn shareable_memory_travels_as_a_descriptor() {
    let (here, there) = (space(), space());
    let mut addresses = Vec::new();
    let physical = here.create(LARGE_GRANULE, true).unwrap();
    let imported = there.import_descriptor(here.export_descriptor(physical).unwrap()).unwrap();
    assert_eq!(there.physical_bytes(imported), Some(LARGE_GRANULE));
    for (space, physical) in [(&here, physical), (&there, imported)] {
        let va = space.reserve(ME, LARGE_GRANULE, 0, None).unwrap();
        space.map(va, LARGE_GRANULE, physical, 0).unwrap();
        space.set_access(va, LARGE_GRANULE, Protection::ReadWrite).unwrap();
        addresses.push(va.0);
    }
    put(&here, addresses[0], b"over").unwrap();
    assert_eq!(get(&there, addresses[1], 4).unwrap(), b"over");
    let plain = here.create(GRANULE, false).unwrap();
    assert!(matches!(here.export_descriptor(plain), Err(Error::NotShareable)));
    let file = tempfile::tempfile().unwrap();
    file.set_len(GRANULE).unwrap();
    assert!(
        matches!(there.import_descriptor(file.into()), Err(Error::StaleExport)),
        "an ordinary file may shrink"
    );
}

#[test]
fn lookups_name_the_region() {
    let space = space();
    let a = space.allocate(ME, 1000).unwrap();
    let b = space.allocate(ME, 1000).unwrap();
    let region = space.lookup(a.0 + 999).unwrap();
    assert_eq!((region.base, region.bytes, region.kind), (a, 1000, RegionKind::Device));
    assert!(space.lookup(a.0 + 1000).is_none(), "beyond what was asked for");
    assert_ne!(space.lookup(b.0).unwrap().id, region.id);
    space.free(a).unwrap();
    let again = space.allocate(ME, 1000).unwrap();
    assert_ne!(space.lookup(again.0).unwrap().id, region.id, "ids are not used again");
}

#[test]
fn exports_end_with_their_allocation() {
    let (here, there) = (space(), space());
    let a = here.allocate(ME, 100).unwrap();
    let handle = here.export(a).unwrap();
    assert_eq!(ExportedMemory::from_bytes(handle.to_bytes()), Some(handle));
    assert_eq!(here.export(a).unwrap(), handle, "one handle per allocation");
    let imported = there.import(ME, &handle).unwrap();
    put(&here, a.0, b"shared").unwrap();
    assert_eq!(get(&there, imported.0, 6).unwrap(), b"shared");
    assert!(matches!(there.free(imported), Err(Error::InvalidAddress { .. })), "not ours to free");
    there.close_import(imported).unwrap();
    assert!(there.close_import(imported).is_err());
    assert!(there.translate(imported.0, 1, Access::Read).is_none());
    here.free(a).unwrap();
    assert!(matches!(there.import(ME, &handle), Err(Error::StaleExport)));
    let b = here.allocate(ME, 100).unwrap();
    here.export(b).unwrap();
    assert!(
        matches!(there.import(ME, &handle), Err(Error::StaleExport)),
        "the same place, another allocation"
    );
}

#[test]
fn forged_handles_are_refused() {
    let space = space();
    let handle = space.export(space.allocate(ME, 100).unwrap()).unwrap().to_bytes();
    assert_eq!(ExportedMemory::from_bytes([0; 64]), None);
    // Not the process number, the first four bytes behind the mark: another number may be a thread of this process,
    // and so name the same file.
    for place in 12..56 {
        let mut forged = handle;
        forged[place] ^= 0x41;
        if let Some(forged) = ExportedMemory::from_bytes(forged)
            && let Ok(mapped) = space.import(ME, &forged)
        {
            // Only the length of live memory could be misstated, and the file is longer than that.
            assert!((32..40).contains(&place) || (24..32).contains(&place), "byte {place}");
            space.close_import(mapped).unwrap();
        }
    }
}

const HANDLE: &str = "EBB_TEST_EXPORTED_MEMORY";

/// Not a test of its own: the other process of the next one.
#[test]
fn ipc_child() {
    let Ok(text) = std::env::var(HANDLE) else { return };
    let mut bytes = [0; 64];
    for (i, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap();
    }
    let handle = ExportedMemory::from_bytes(bytes).unwrap();
    assert_ne!(handle.pid(), std::process::id());
    let space = space();
    let mapped = space.import(ME, &handle).unwrap();
    assert_eq!(get(&space, mapped.0, 4).unwrap(), b"ping");
    put(&space, mapped.0, b"pong").unwrap();
}

#[test]
fn processes_share_exported_memory() {
    let space = space();
    let a = space.allocate(ME, 100).unwrap();
    put(&space, a.0, b"ping").unwrap();
    let handle = space.export(a).unwrap();
    let text: String = handle.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    let child = |text: &str| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "memory::tests::ipc_child"]).env(HANDLE, text).output().unwrap()
    };
    let output = child(&text);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(get(&space, a.0, 4).unwrap(), b"pong");
    space.free(a).unwrap();
    assert!(!child(&text).status.success(), "the memory is gone");
}

#[test]
fn spaces_are_used_by_many_threads() {
    let space = space();
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            let space = &space;
            scope.spawn(move || {
                for round in 0..200 {
                    let a = space.allocate(ContextId(u64::from(thread)), 1 + round * 997).unwrap();
                    put(space, a.0, &[thread; 64]).unwrap();
                    assert_eq!(get(space, a.0, 64).unwrap(), [thread; 64]);
                    space.free(a).unwrap();
                }
            });
        }
    });
    assert!(space.allocate(ME, WINDOW - LARGE_GRANULE).is_ok());
}
