//! Green contexts and the resources that they are made of.

use softgpu::card::{Properties, SmSet};

use super::prelude::*;
use crate::entry;
use crate::state::green::{self, Description, GreenContext};
use crate::state::stream::Kind;

/// Resources of a split have room for so many groups at most: one for each SM.
const MOST_RESOURCES: c_uint = softgpu::card::MAX_SMS as c_uint;

/// The struct that tells a program of some SMs.
fn resource_of(sms: &SmSet, properties: &Properties) -> CUdevResource {
    let granularity = green::granularity(properties);
    let counts = CUdevSmResource {
        smCount: sms.count(),
        minSmPartitionSize: granularity,
        smCoscheduledAlignment: granularity,
        ..CUdevSmResource::default()
    };
    let mut resource = CUdevResource { type_: CU_DEV_RESOURCE_TYPE_SM, ..CUdevResource::default() };
    resource._internal_padding[..SmSet::BYTES].copy_from_slice(&sms.to_bytes());
    resource.__bindgen_anon_1.sm = counts;
    resource
}

/// The SMs that a program's struct tells of, which it may have made up.
fn sms_of(resource: &CUdevResource, properties: &Properties) -> Result<SmSet> {
    if resource.type_ != CU_DEV_RESOURCE_TYPE_SM {
        return refuse(CUDA_ERROR_INVALID_RESOURCE_TYPE);
    }
    let bytes = std::array::from_fn(|byte| resource._internal_padding[byte]);
    let sms = SmSet::from_bytes(&bytes);
    let counted = entry::sm_resource(resource).smCount == sms.count();
    if sms.is_empty() || !counted || !sms.is_subset(&green::all_sms(properties)) {
        return refuse(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
    }
    Ok(sms)
}

/// Only SMs can be had; queues of work are one for all here.
fn give(
    resource: &Out<CUdevResource>,
    kind: CUdevResourceType,
    sms: &SmSet,
    properties: &Properties,
) -> Result<()> {
    resource.check()?;
    if kind != CU_DEV_RESOURCE_TYPE_SM {
        return refuse(CUDA_ERROR_INVALID_RESOURCE_TYPE);
    }
    resource.set(resource_of(sms, properties))
}

pub fn cuDeviceGetDevResource(
    device: CUdevice,
    resource: Out<CUdevResource>,
    type_: CUdevResourceType,
) -> Result<()> {
    let driver = driver()?;
    driver.check_device(device)?;
    give(&resource, type_, &green::all_sms(&driver.properties), &driver.properties)
}

/// A context that is not green has all there is.
pub fn cuCtxGetDevResource(
    hCtx: Handle<Context>,
    resource: Out<CUdevResource>,
    type_: CUdevResourceType,
) -> Result<()> {
    let properties = &driver()?.properties;
    hCtx.get()?;
    give(&resource, type_, &green::all_sms(properties), properties)
}

pub fn cuGreenCtxGetDevResource(
    hCtx: Handle<GreenContext>,
    resource: Out<CUdevResource>,
    type_: CUdevResourceType,
) -> Result<()> {
    let properties = &driver()?.properties;
    give(&resource, type_, &hCtx.get()?.sms, properties)
}

/// Without a place for the groups it says how many there could be.
pub fn cuDevSmResourceSplitByCount(
    result: Array<CUdevResource>,
    nbGroups: Out<c_uint>,
    input: In<CUdevResource>,
    remainder: Out<CUdevResource>,
    flags: c_uint,
    minCount: c_uint,
) -> Result<()> {
    let properties = &driver()?.properties;
    let wanted = if result.is_null() { MOST_RESOURCES } else { nbGroups.read()? };
    let (loose, clusters) = (
        CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING.0,
        CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE.0,
    );
    require(wanted > 0 && !nbGroups.is_null() && flags & !(loose | clusters) == 0)?;
    let sms = sms_of(&input.get()?, properties)?;
    let usual = green::granularity(properties);
    // There are no clusters here, so only the wish for small groups makes a difference.
    let granularity = if flags & loose == 0 { usual } else { usual.min(2) };
    let (groups, rest) = green::split(sms, minCount, wanted, granularity);
    if groups.is_empty() {
        return refuse(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
    }
    nbGroups.set(groups.len() as c_uint)?;
    if result.is_null() {
        return Ok(());
    }
    let groups: Vec<CUdevResource> = groups.iter().map(|group| resource_of(group, properties)).collect();
    result.write(&groups)?;
    remainder.set_if_wanted(match rest.is_empty() {
        true => CUdevResource::default(),
        false => resource_of(&rest, properties),
    });
    Ok(())
}

pub fn cuDevResourceGenerateDesc(
    phDesc: Out<CUdevResourceDesc>,
    resources: Array<CUdevResource>,
    nbResources: c_uint,
) -> Result<()> {
    let properties = &driver()?.properties;
    phDesc.check()?;
    require((1..=MOST_RESOURCES).contains(&nbResources))?;
    let mut sms = SmSet::default();
    for resource in resources.read(nbResources as usize)? {
        sms = sms.union(&sms_of(&resource, properties)?);
    }
    phDesc.set(Description::create(sms).raw())
}

/// The flag was required by the first drivers that had green contexts and is known to all of them. The default stream that it asks for
/// could only be used with the green context current, which is not to be had here.
pub fn cuGreenCtxCreate(
    phCtx: Out<CUgreenCtx>,
    desc: Handle<Description>,
    dev: CUdevice,
    flags: c_uint,
) -> Result<()> {
    let driver = driver()?;
    phCtx.check()?;
    driver.check_device(dev)?;
    require(flags == CU_GREEN_CTX_DEFAULT_STREAM.0)?;
    let sms = desc.get()?.sms;
    phCtx.set(GreenContext::create(driver, sms)?.handle.raw())
}

pub fn cuGreenCtxDestroy(hCtx: Handle<GreenContext>) -> Result<()> {
    let driver = driver()?;
    hCtx.take()?.destroy(driver)
}

pub fn cuGreenCtxStreamCreate(
    phStream: Out<CUstream>,
    greenCtx: Handle<GreenContext>,
    flags: c_uint,
    priority: c_int,
) -> Result<()> {
    driver()?;
    phStream.check()?;
    require(flags == CU_STREAM_NON_BLOCKING.0)?;
    let green = greenCtx.get()?;
    let context = green.context()?;
    phStream.set(Stream::create(&context, Kind::NonBlocking, priority, Some(green)).handle.raw())
}

pub fn cuStreamGetGreenCtx(hStream: Handle<Stream>, phCtx: Out<CUgreenCtx>) -> Result<()> {
    let stream = Stream::find(hStream)?;
    phCtx.set(stream.green_handle())
}
