//! What the smith is asked for, in the order in which it was asked.

use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use rustix::thread::futex;
use rustix::time::Timespec;

use crate::frames::{Frame, Module};
use crate::lock::Lock;

#[derive(Clone, Copy)]
pub enum Order {
    /// A twin is wanted.
    Make(&'static Frame),
    /// A twin was taken out of use for good.
    Remember(&'static Frame),
    /// A module was unloaded.
    Forget(&'static Module),
}

/// Frames and modules are aligned to more than that, so their addresses have room for what is wanted of them.
const KIND: usize = 3;
const MAKE: usize = 0;
const REMEMBER: usize = 1;
const FORGET: usize = 2;
const _: () = assert!(align_of::<Frame>() > KIND && align_of::<Module>() > KIND);

impl Order {
    fn pack(self) -> usize {
        match self {
            Order::Make(frame) => ptr::from_ref(frame).expose_provenance() | MAKE,
            Order::Remember(frame) => ptr::from_ref(frame).expose_provenance() | REMEMBER,
            Order::Forget(module) => ptr::from_ref(module).expose_provenance() | FORGET,
        }
    }

    fn unpack(packed: usize) -> Order {
        let address = packed & !KIND;
        if packed & KIND == FORGET {
            // SAFETY: packed above, out of a reference for ever.
            return Order::Forget(unsafe { &*ptr::with_exposed_provenance(address) });
        }
        // SAFETY: packed above, out of a reference for ever.
        let frame = unsafe { &*ptr::with_exposed_provenance(address) };
        if packed & KIND == REMEMBER { Order::Remember(frame) } else { Order::Make(frame) }
    }
}

/// A program that uses more kernels at once than this asks again.
const ROOM: usize = 2048;

pub struct Queue {
    lock: Lock,
    orders: [AtomicUsize; ROOM],
    put: AtomicUsize,
    taken: AtomicUsize,
    bell: AtomicU32,
}

impl Queue {
    pub const fn new() -> Queue {
        Queue {
            lock: Lock::new(),
            orders: [const { AtomicUsize::new(0) }; ROOM],
            put: AtomicUsize::new(0),
            taken: AtomicUsize::new(0),
            bell: AtomicU32::new(0),
        }
    }

    /// `None` where there is no room.
    pub fn put(&self, order: Order) -> Option<()> {
        let held = self.lock.acquire()?;
        let (put, taken) = (self.put.load(Ordering::Relaxed), self.taken.load(Ordering::Relaxed));
        if put - taken == ROOM {
            return None;
        }
        self.orders[put % ROOM].store(order.pack(), Ordering::Relaxed);
        self.put.store(put + 1, Ordering::Relaxed);
        drop(held);
        self.ring();
        Some(())
    }

    pub fn take(&self) -> Option<Order> {
        let _held = self.lock.acquire()?;
        let (put, taken) = (self.put.load(Ordering::Relaxed), self.taken.load(Ordering::Relaxed));
        if put == taken {
            return None;
        }
        self.taken.store(taken + 1, Ordering::Relaxed);
        Some(Order::unpack(self.orders[taken % ROOM].load(Ordering::Relaxed)))
    }

    pub fn ring(&self) {
        // SYNC(smith-bell): pairs with the load in `bell`; an order that was put before is found.
        self.bell.fetch_add(1, Ordering::Release);
        let _ = futex::wake(&self.bell, futex::Flags::PRIVATE, 1);
    }

    /// What the bell says now, for `rest`.
    pub fn bell(&self) -> u32 {
        // SYNC(smith-bell): pairs with the addition in `ring`.
        self.bell.load(Ordering::Acquire)
    }

    /// Sleeps until somebody rings, or for a second.
    pub fn rest(&self, seen: u32) {
        let second = Timespec { tv_sec: 1, tv_nsec: 0 };
        let _ = futex::wait(&self.bell, futex::Flags::PRIVATE, seen, Some(&second));
    }

    /// In the child of a fork, which has asked for nothing.
    pub fn in_child(&self) {
        self.lock.reset();
        self.taken.store(self.put.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::Image;

    #[test]
    fn orders_come_out_as_they_went_in() {
        let queue = Queue::new();
        let module: &Module = crate::arena::place(Module::new(Image::UNKNOWN)).unwrap();
        assert!(queue.take().is_none());
        for _ in 0..ROOM {
            queue.put(Order::Forget(module)).unwrap();
        }
        assert!(queue.put(Order::Forget(module)).is_none(), "it is full");
        assert!(matches!(queue.take(), Some(Order::Forget(same)) if ptr::eq(same, module)));
        assert!(queue.put(Order::Forget(module)).is_some());
    }

    #[test]
    fn who_has_looked_before_the_bell_rang_does_not_sleep() {
        let queue = Queue::new();
        let seen = queue.bell();
        queue.ring();
        let began = std::time::Instant::now();
        queue.rest(seen);
        assert!(began.elapsed().as_millis() < 900);
    }
}
