//! Waiting for words in memory and writing them, in stream order.

use softgpu::memory::Word;

use super::prelude::*;
use crate::state::operation::{Condition, Operation, WordOperation};

/// The most operations in one batch, as on the card.
const MOST: usize = 256;

fn condition(flags: c_uint) -> Result<Condition> {
    require(flags & !(CU_STREAM_WAIT_VALUE_NOR.0 | CU_STREAM_WAIT_VALUE_FLUSH.0) == 0)?;
    if flags & CU_STREAM_WAIT_VALUE_FLUSH.0 != 0 {
        return Err(Error::unsupported("flushing the writes of other devices"));
    }
    Ok(match CUstreamWaitValue_flags_enum(flags & CU_STREAM_WAIT_VALUE_NOR.0) {
        CU_STREAM_WAIT_VALUE_GEQ => Condition::Geq,
        CU_STREAM_WAIT_VALUE_EQ => Condition::Eq,
        CU_STREAM_WAIT_VALUE_AND => Condition::And,
        _ => Condition::Nor,
    })
}

fn wait(address: u64, width: Word, value: u64, flags: c_uint) -> Result<WordOperation> {
    Ok(WordOperation::Wait { address, width, value, condition: condition(flags)? })
}

fn write(address: u64, width: Word, value: u64, flags: c_uint) -> Result<WordOperation> {
    // The card refuses even the flag that the header has for older versions of the calls.
    require(flags == 0)?;
    Ok(WordOperation::Write { address, width, value })
}

fn enqueue(stream: Handle<Stream>, words: Vec<WordOperation>) -> Result<()> {
    let stream = Stream::find(stream)?;
    let operation = Operation::Words(words.into());
    operation.check(&stream.context()?.driver.space)?;
    stream.enqueue(operation).map(drop)
}

pub fn cuStreamWaitValue32_v2(
    stream: Handle<Stream>,
    addr: CUdeviceptr,
    value: cuuint32_t,
    flags: c_uint,
) -> Result<()> {
    driver()?;
    enqueue(stream, vec![wait(addr, Word::Four, u64::from(value), flags)?])
}

pub fn cuStreamWaitValue64_v2(
    stream: Handle<Stream>,
    addr: CUdeviceptr,
    value: cuuint64_t,
    flags: c_uint,
) -> Result<()> {
    driver()?;
    enqueue(stream, vec![wait(addr, Word::Eight, value, flags)?])
}

pub fn cuStreamWriteValue32_v2(
    stream: Handle<Stream>,
    addr: CUdeviceptr,
    value: cuuint32_t,
    flags: c_uint,
) -> Result<()> {
    driver()?;
    enqueue(stream, vec![write(addr, Word::Four, u64::from(value), flags)?])
}

pub fn cuStreamWriteValue64_v2(
    stream: Handle<Stream>,
    addr: CUdeviceptr,
    value: cuuint64_t,
    flags: c_uint,
) -> Result<()> {
    driver()?;
    enqueue(stream, vec![write(addr, Word::Eight, value, flags)?])
}

pub fn cuStreamWaitValue32(
    stream: Handle<Stream>,
    addr: CUdeviceptr,
    value: cuuint32_t,
    flags: c_uint,
) -> Result<()> {
    cuStreamWaitValue32_v2(stream, addr, value, flags)
}

pub fn cuStreamWaitValue64(
    stream: Handle<Stream>,
    addr: CUdeviceptr,
    value: cuuint64_t,
    flags: c_uint,
) -> Result<()> {
    cuStreamWaitValue64_v2(stream, addr, value, flags)
}

pub fn cuStreamWriteValue32(
    stream: Handle<Stream>,
    addr: CUdeviceptr,
    value: cuuint32_t,
    flags: c_uint,
) -> Result<()> {
    cuStreamWriteValue32_v2(stream, addr, value, flags)
}

pub fn cuStreamWriteValue64(
    stream: Handle<Stream>,
    addr: CUdeviceptr,
    value: cuuint64_t,
    flags: c_uint,
) -> Result<()> {
    cuStreamWriteValue64_v2(stream, addr, value, flags)
}

pub fn cuStreamBatchMemOp_v2(
    stream: Handle<Stream>,
    count: c_uint,
    paramArray: Array<CUstreamBatchMemOpParams>,
    flags: c_uint,
) -> Result<()> {
    driver()?;
    require(flags == 0)?;
    if count == 0 {
        return Stream::find(stream).map(drop);
    }
    enqueue(stream, batch(&paramArray, count as usize)?)
}

pub fn cuStreamBatchMemOp(
    stream: Handle<Stream>,
    count: c_uint,
    paramArray: Array<CUstreamBatchMemOpParams>,
    flags: c_uint,
) -> Result<()> {
    cuStreamBatchMemOp_v2(stream, count, paramArray, flags)
}

/// The operations of a batch. Each is a union whose first word tells which it is; read as plain words, so that
/// no field is believed before it is known to be there.
pub fn batch(params: &Array<CUstreamBatchMemOpParams>, count: usize) -> Result<Vec<WordOperation>> {
    require((1..=MOST).contains(&count))?;
    params.read(count)?.iter().map(|params| one(&crate::entry::words_of(params))).collect()
}

/// Words of an operation: kind, address, value, flags; the kind has its own half of a word.
fn one(words: &[u64; 6]) -> Result<WordOperation> {
    let [kind, address, value, flags, ..] = *words;
    let flags = flags as u32;
    let narrow = u64::from(value as u32);
    match CUstreamBatchMemOpType_enum(kind as u32) {
        CU_STREAM_MEM_OP_WAIT_VALUE_32 => wait(address, Word::Four, narrow, flags),
        CU_STREAM_MEM_OP_WAIT_VALUE_64 => wait(address, Word::Eight, value, flags),
        CU_STREAM_MEM_OP_WRITE_VALUE_32 => write(address, Word::Four, narrow, flags),
        CU_STREAM_MEM_OP_WRITE_VALUE_64 => write(address, Word::Eight, value, flags),
        CU_STREAM_MEM_OP_BARRIER => Ok(WordOperation::Barrier),
        CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES => {
            Err(Error::unsupported("flushing the writes of other devices"))
        }
        _ => refuse(CUDA_ERROR_INVALID_VALUE),
    }
}
