//! Options of just-in-time compilation: of interest are the buffers for messages.

use super::prelude::*;
use crate::state::image::{Program, Source};

/// What a call gave as options, with a place each for what it wants back.
pub struct Options {
    info: Log,
    error: Log,
    wall_time: Option<usize>,
    values: Array<*mut c_void>,
}

/// A buffer for messages, and which option says its size.
#[derive(Default)]
struct Log {
    buffer: Option<Address>,
    size: Option<(usize, usize)>,
}

impl Options {
    pub fn read(count: c_uint, options: &Array<CUjit_option>, values: Array<*mut c_void>) -> Result<Options> {
        let mut read = Options { info: Log::default(), error: Log::default(), wall_time: None, values };
        if count == 0 {
            return Ok(read);
        }
        require(!options.is_null() && !read.values.is_null() && count <= 256)?;
        for (place, option) in options.read(count as usize)?.into_iter().enumerate() {
            let value = read.values.at(place);
            let size = Some((place, value.addr() & 0xffff_ffff));
            let buffer = Some(Address(value.expose_provenance() as u64)).filter(|address| !address.is_null());
            match option {
                CU_JIT_INFO_LOG_BUFFER => read.info.buffer = buffer,
                CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES => read.info.size = size,
                CU_JIT_ERROR_LOG_BUFFER => read.error.buffer = buffer,
                CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES => read.error.size = size,
                CU_JIT_WALL_TIME => read.wall_time = Some(place),
                // Everything else steers a code generator that does not exist here.
                option if option.0 < CU_JIT_NUM_OPTIONS.0 => {}
                _ => return refuse(CUDA_ERROR_INVALID_VALUE),
            }
        }
        Ok(read)
    }

    /// Compiles and answers through the options.
    pub fn compile(&self, source: &Source) -> Result<Program> {
        self.run(|| source.compile())
    }

    /// Runs a piece of the compiler and answers through the options.
    pub fn run<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let began = std::time::Instant::now();
        let result = work();
        let message = match &result {
            Ok(_) => "",
            Err(error) => error.why.as_deref().unwrap_or("the program was refused"),
        };
        self.error.answer(&self.values, message);
        self.info.answer(&self.values, "");
        if let Some(place) = self.wall_time {
            let milliseconds = began.elapsed().as_secs_f32() * 1e3;
            self.values.put(place, std::ptr::without_provenance_mut(milliseconds.to_bits() as usize));
        }
        result
    }
}

impl Log {
    /// Writes as much as fits, ended by a zero byte, and the number of bytes where the size was.
    fn answer(&self, values: &Array<*mut c_void>, message: &str) {
        let (Some(buffer), Some((place, size))) = (self.buffer, self.size) else { return };
        let taken = message.len().min(size.saturating_sub(1));
        if size > 0 {
            let text = buffer.values::<u8>();
            message
                .bytes()
                .take(taken)
                .chain([0])
                .enumerate()
                .for_each(|(index, byte)| text.put(index, byte));
        }
        values.put(place, std::ptr::without_provenance_mut(taken));
    }
}

/// What a pointer to an image points to. Its size is nowhere said: a container tells its own, text ends with a
/// zero byte.
pub fn source_at(image: Address) -> Result<Source> {
    require(!image.is_null())?;
    crate::entry::image_at(image)
}

pub fn source_of_file(path: &str) -> Result<Source> {
    let bytes = std::fs::read(path)
        .map_err(|error| Error::new(CUDA_ERROR_FILE_NOT_FOUND, format!("{path}: {error}")))?;
    Source::of_bytes(&bytes)
}
