//! The device.

use super::attributes;
use super::prelude::*;

pub const NAME: &str = "ebb software GPU";
const PCI_DOMAIN: i32 = 0;
pub const PCI_BUS: i32 = 0xeb;
pub const PCI_DEVICE: i32 = 0;

pub fn cuDeviceGetCount(count: Out<c_int>) -> Result<()> {
    driver()?;
    count.set(1)
}

pub fn cuDeviceGet(device: Out<CUdevice>, ordinal: c_int) -> Result<()> {
    driver()?;
    device.check()?;
    if ordinal != 0 {
        return refuse(CUDA_ERROR_INVALID_DEVICE);
    }
    device.set(DEVICE)
}

pub fn cuDeviceGetName(name: Array<c_char>, len: c_int, dev: CUdevice) -> Result<()> {
    driver()?.check_device(dev)?;
    write_text(&name, len, NAME)
}

/// Writes as much of a text as there is room for, always ended by a zero byte.
pub fn write_text(out: &Array<c_char>, len: c_int, text: &str) -> Result<()> {
    let room = usize::try_from(len).unwrap_or(0);
    require(room > 0 && !out.is_null())?;
    let text: Vec<c_char> = text.bytes().take(room - 1).chain([0]).map(|byte| byte as c_char).collect();
    out.write(&text)
}

pub fn cuDeviceGetUuid(uuid: Out<CUuuid>, dev: CUdevice) -> Result<()> {
    let driver = driver()?;
    driver.check_device(dev)?;
    uuid.set(CUuuid { bytes: driver.properties.uuid.map(|byte| byte as c_char) })
}

pub fn cuDeviceGetUuid_v2(uuid: Out<CUuuid>, dev: CUdevice) -> Result<()> {
    cuDeviceGetUuid(uuid, dev)
}

pub fn cuDeviceTotalMem_v2(bytes: Out<usize>, dev: CUdevice) -> Result<()> {
    let driver = driver()?;
    driver.check_device(dev)?;
    bytes.set(driver.properties.memory_bytes as usize)
}

pub fn cuDeviceGetAttribute(pi: Out<c_int>, attrib: CUdevice_attribute, dev: CUdevice) -> Result<()> {
    let driver = driver()?;
    pi.check()?;
    driver.check_device(dev)?;
    pi.set(attributes::value(attrib, &driver.properties)?)
}

pub fn cuDeviceComputeCapability(major: Out<c_int>, minor: Out<c_int>, dev: CUdevice) -> Result<()> {
    driver()?.check_device(dev)?;
    major.set(attributes::CAPABILITY.0)?;
    minor.set(attributes::CAPABILITY.1)
}

pub fn cuDeviceGetProperties(prop: Out<CUdevprop>, dev: CUdevice) -> Result<()> {
    let driver = driver()?;
    driver.check_device(dev)?;
    let properties = &driver.properties;
    prop.set(CUdevprop {
        maxThreadsPerBlock: properties.threads_per_block as c_int,
        maxThreadsDim: [1024, 1024, 64],
        maxGridSize: [i32::MAX, 65535, 65535],
        sharedMemPerBlock: properties.shared_per_block as c_int,
        totalConstantMemory: 64 << 10,
        SIMDWidth: 32,
        memPitch: i32::MAX,
        regsPerBlock: properties.registers_per_sm as c_int,
        clockRate: properties.clock_khz as c_int,
        textureAlign: 512,
    })
}

pub fn cuDeviceGetPCIBusId(pciBusId: Array<c_char>, len: c_int, dev: CUdevice) -> Result<()> {
    driver()?.check_device(dev)?;
    write_text(&pciBusId, len, &format!("{PCI_DOMAIN:04X}:{PCI_BUS:02X}:{PCI_DEVICE:02X}.0"))
}

pub fn cuDeviceGetByPCIBusId(dev: Out<CUdevice>, pciBusId: Text) -> Result<()> {
    driver()?;
    dev.check()?;
    match bus_id(&pciBusId.get()?) {
        Some(place) if place == [PCI_DOMAIN, PCI_BUS, PCI_DEVICE] => dev.set(DEVICE),
        Some(_) => refuse(CUDA_ERROR_INVALID_DEVICE),
        None => refuse(CUDA_ERROR_INVALID_VALUE),
    }
}

/// The numbers in `domain:bus:device.function`, of which domain and function may be missing.
fn bus_id(text: &str) -> Option<[i32; 3]> {
    let place = text.split('.').next()?;
    let numbers =
        place.split(':').map(|part| i32::from_str_radix(part, 16).ok()).collect::<Option<Vec<i32>>>()?;
    match numbers[..] {
        [domain, bus, device] => Some([domain, bus, device]),
        [bus, device] => Some([0, bus, device]),
        _ => None,
    }
}

pub fn cuDeviceCanAccessPeer(canAccessPeer: Out<c_int>, dev: CUdevice, peerDev: CUdevice) -> Result<()> {
    let driver = driver()?;
    driver.check_device(dev)?;
    driver.check_device(peerDev)?;
    canAccessPeer.set(0)
}

pub fn cuDeviceGetP2PAttribute(
    value: Out<c_int>,
    _attrib: CUdevice_P2PAttribute,
    srcDevice: CUdevice,
    dstDevice: CUdevice,
) -> Result<()> {
    let driver = driver()?;
    value.check()?;
    driver.check_device(srcDevice)?;
    driver.check_device(dstDevice)?;
    refuse(CUDA_ERROR_INVALID_DEVICE)
}

pub fn cuDeviceGetExecAffinitySupport(
    pi: Out<c_int>,
    _type: CUexecAffinityType,
    dev: CUdevice,
) -> Result<()> {
    driver()?.check_device(dev)?;
    pi.set(0)
}

pub fn cuDeviceGetTexture1DLinearMaxWidth(
    _maxWidthInElements: Out<usize>,
    _format: CUarray_format,
    _numChannels: c_uint,
    dev: CUdevice,
) -> Result<()> {
    driver()?.check_device(dev)?;
    Err(Error::unsupported("a texture"))
}

#[cfg(test)]
mod tests {
    use super::bus_id;

    #[test]
    fn bus_ids_have_three_forms() {
        assert_eq!(bus_id("0000:EB:00.0"), Some([0, 0xeb, 0]));
        assert_eq!(bus_id("0001:eb:1f"), Some([1, 0xeb, 0x1f]));
        assert_eq!(bus_id("eb:00.0"), Some([0, 0xeb, 0]));
        assert_eq!(bus_id("nonsense"), None);
        assert_eq!(bus_id(""), None);
    }
}
