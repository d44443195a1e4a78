//! Events.

use super::prelude::*;
use crate::state::event::Event;

pub fn cuEventCreate(phEvent: Out<CUevent>, Flags: c_uint) -> Result<()> {
    let context = current::context()?;
    phEvent.check()?;
    let known = CU_EVENT_BLOCKING_SYNC.0 | CU_EVENT_DISABLE_TIMING.0 | CU_EVENT_INTERPROCESS.0;
    require(Flags & !known == 0)?;
    if Flags & CU_EVENT_INTERPROCESS.0 != 0 {
        require(Flags & CU_EVENT_DISABLE_TIMING.0 != 0)?;
        return Err(Error::unsupported("an event shared by processes"));
    }
    phEvent.set(Event::create(&context, Flags).handle.raw())
}

pub fn cuEventDestroy_v2(hEvent: Handle<Event>) -> Result<()> {
    driver()?;
    hEvent.take().map(drop)
}

pub fn cuEventDestroy(hEvent: Handle<Event>) -> Result<()> {
    cuEventDestroy_v2(hEvent)
}

pub fn cuEventRecord(hEvent: Handle<Event>, hStream: Handle<Stream>) -> Result<()> {
    cuEventRecordWithFlags(hEvent, hStream, CU_EVENT_RECORD_DEFAULT.0)
}

pub fn cuEventRecordWithFlags(hEvent: Handle<Event>, hStream: Handle<Stream>, flags: c_uint) -> Result<()> {
    driver()?;
    let event = hEvent.get()?;
    let stream = Stream::find(hStream)?;
    require(flags & !CU_EVENT_RECORD_EXTERNAL.0 == 0)?;
    event.record(&stream, flags & CU_EVENT_RECORD_EXTERNAL.0 != 0)
}

pub fn cuEventQuery(hEvent: Handle<Event>) -> Result<()> {
    crate::entry::even_in_host_functions(|| {
        driver()?;
        hEvent.get()?.query()
    })
}

pub fn cuEventSynchronize(hEvent: Handle<Event>) -> Result<()> {
    driver()?;
    hEvent.get()?.synchronise()
}

pub fn cuEventElapsedTime(pMilliseconds: Out<f32>, hStart: Handle<Event>, hEnd: Handle<Event>) -> Result<()> {
    driver()?;
    // A card says so of a missing place for the result, too.
    if pMilliseconds.is_null() {
        return refuse(CUDA_ERROR_INVALID_HANDLE);
    }
    let (start, end) = (hStart.get()?, hEnd.get()?);
    pMilliseconds.set(end.elapsed_since(&start)?)
}

pub fn cuEventElapsedTime_v2(
    pMilliseconds: Out<f32>,
    hStart: Handle<Event>,
    hEnd: Handle<Event>,
) -> Result<()> {
    cuEventElapsedTime(pMilliseconds, hStart, hEnd)
}

pub fn cuStreamWaitEvent(hStream: Handle<Stream>, hEvent: Handle<Event>, Flags: c_uint) -> Result<()> {
    let stream = Stream::find(hStream)?;
    let event = hEvent.get()?;
    require(Flags & !CU_EVENT_WAIT_EXTERNAL.0 == 0)?;
    event.hold(&stream, Flags & CU_EVENT_WAIT_EXTERNAL.0 != 0)
}
