//! Who connects, as far as that can be told before a word was said.
//!
//! From another machine: its address. From this one, where all have the same: the user whose socket it is, which the kernel says
//! (`NETLINK_SOCK_DIAG`, to anybody). Where it does not, all of this machine are one.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

/// One who is given a share of the places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PeerName {
    /// A user of this machine.
    User(u32),
    /// An address. Of the sixth version a network: one machine may choose among all addresses of its own.
    Address(IpAddr),
}

impl PeerName {
    pub fn of(own: SocketAddr, peer: SocketAddr) -> PeerName {
        let (here, there) = (own.ip().to_canonical(), peer.ip().to_canonical());
        let local = there.is_loopback() || here == there;
        let user =
            local.then(|| user_of(SocketAddr::new(there, peer.port()), SocketAddr::new(here, own.port())));
        match (user.flatten(), there) {
            (Some(user), _) => PeerName::User(user),
            (None, IpAddr::V6(address)) => {
                PeerName::Address(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into())
            }
            (None, address) => PeerName::Address(address),
        }
    }
}

const HEADER: usize = 16;
const REQUEST: usize = HEADER + 56;
const BY_FAMILY: u16 = 20;
const PLEASE: u16 = 1;
const TCP: u8 = 6;
/// Where the user stands in an answer.
const USER: usize = HEADER + 64;

/// The user of a socket of this machine that has these two ends.
fn user_of(near: SocketAddr, far: SocketAddr) -> Option<u32> {
    let question = question(near, far)?;
    let kind = (AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC);
    let socket = rustix::net::socket_with(kind.0, kind.1, kind.2, Some(SOCK_DIAG)).ok()?;
    rustix::net::sendto(&socket, &question, SendFlags::empty(), &SocketAddrNetlink::new(0, 0)).ok()?;
    // The kernel has answered before the question was put down.
    let mut answer = [0; 512];
    let (length, _) = rustix::net::recv(&socket, &mut answer, RecvFlags::DONTWAIT).ok()?;
    read_user(answer.get(..length)?)
}

fn question(near: SocketAddr, far: SocketAddr) -> Option<[u8; REQUEST]> {
    let mut bytes = [0; REQUEST];
    let mut put = |at: usize, what: &[u8]| bytes[at..at + what.len()].copy_from_slice(what);
    put(0, &(REQUEST as u32).to_ne_bytes());
    put(4, &BY_FAMILY.to_ne_bytes());
    put(6, &PLEASE.to_ne_bytes());
    let family = match (near, far) {
        (SocketAddr::V4(_), SocketAddr::V4(_)) => AddressFamily::INET,
        (SocketAddr::V6(_), SocketAddr::V6(_)) => AddressFamily::INET6,
        _ => return None,
    };
    put(HEADER, &[u8::try_from(family.as_raw()).ok()?, TCP]);
    put(HEADER + 4, &u32::MAX.to_ne_bytes());
    put(HEADER + 8, &near.port().to_be_bytes());
    put(HEADER + 10, &far.port().to_be_bytes());
    for (at, address) in [(HEADER + 12, near.ip()), (HEADER + 28, far.ip())] {
        match address {
            IpAddr::V4(address) => put(at, &address.octets()),
            IpAddr::V6(address) => put(at, &address.octets()),
        }
    }
    // Any cookie.
    put(HEADER + 48, &[0xff; 8]);
    Some(bytes)
}

fn read_user(answer: &[u8]) -> Option<u32> {
    let kind = u16::from_ne_bytes(answer.get(4..6)?.try_into().ok()?);
    let user = answer.get(USER..USER + 4)?.try_into().ok()?;
    (kind == BY_FAMILY).then(|| u32::from_ne_bytes(user))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn who_connects_from_this_machine_is_known_by_its_user() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (stream, peer) = listener.accept().unwrap();
            let name = PeerName::of(stream.local_addr().unwrap(), peer);
            if name == PeerName::Address(peer.ip()) {
                eprintln!("skipped: the kernel does not say whose a socket is");
                continue;
            }
            assert_eq!(name, PeerName::User(rustix::process::geteuid().as_raw()));
        }
    }

    #[test]
    fn others_are_known_by_their_address_or_their_network() {
        let name = |peer: &str| PeerName::of("10.0.0.1:80".parse().unwrap(), peer.parse().unwrap());
        let address = |text: &str| PeerName::Address(text.parse().unwrap());
        assert_eq!(name("10.0.0.2:5"), address("10.0.0.2"));
        assert_eq!(name("[::ffff:10.0.0.2]:5"), address("10.0.0.2"));
        assert_eq!(name("[2001:db8::1:2:3:4]:5"), name("[2001:db8::9]:6"));
        assert_ne!(name("[2001:db8:0:1::1]:5"), name("[2001:db8::1]:5"));
    }

    #[test]
    fn an_answer_that_is_none_names_nobody() {
        for length in [0, 3, 5, 6, 40, USER, USER + 3] {
            assert_eq!(read_user(&vec![0; length]), None);
        }
        assert_eq!(read_user(&[0; 200]), None, "of no kind");
    }
}
