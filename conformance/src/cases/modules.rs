//! Modules and libraries: from PTX, from fat binaries, linked from two parts; their variables and functions.

use crate::answer::Code;
use crate::context::Context;
use crate::driver::*;
use crate::module::Module;
use crate::suite::Case;
use crate::{args, compare, source};
use anyhow::{Context as _, Result, ensure};
use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr;

pub const CASES: &[Case] = &[
    Case::new("module/globals_and_constants", globals),
    Case::new("module/each_load_has_its_own_variables", own_variables),
    Case::new("module/function_and_global_lookup", lookup),
    Case::new("module/functions_can_be_listed", listing),
    Case::new("module/from_file", from_file),
    Case::new("module/fatbin_raw", |c| fatbin(c, RAW)),
    Case::new("module/fatbin_zstd", |c| fatbin(c, ZSTD)),
    Case::new("module/fatbin_lz4", |c| fatbin(c, LZ4)),
    Case::new("module/fatbin_with_foreign_machine_code", |c| fatbin(c, SEVERAL)),
    Case::new("module/fatbin_wrapper_is_refused", wrapper),
    Case::new("module/foreign_machine_code_is_refused", foreign),
    Case::new("module/function_attributes", attributes),
    Case::new("module/parameter_info", parameter_info),
    Case::new("module/jit_options_and_log", jit_log),
    Case::new("module/link_two_texts", link),
    Case::new("module/link_unresolved_is_refused", link_unresolved),
    Case::new("module/library", library),
    Case::new("module/library_kernel_without_context_call", library_kernel),
    Case::new("module/unload_forgets", unload),
];

pub const RAW: &[u8] = include_bytes!("../../kernels/fatbin/stencil.raw.fatbin");
pub const ZSTD: &[u8] = include_bytes!("../../kernels/fatbin/stencil.zstd.fatbin");
pub const LZ4: &[u8] = include_bytes!("../../kernels/fatbin/stencil.lz4.fatbin");
const SEVERAL: &[u8] = include_bytes!("../../kernels/fatbin/stencil.several.fatbin");
const FOREIGN: &[u8] = include_bytes!("../../kernels/fatbin/stencil.foreign.fatbin");
pub const FOREIGN_CUBIN: &[u8] = include_bytes!("../../kernels/fatbin/stencil.foreign.cubin");

fn globals(context: &Context<'_>) -> Result<()> {
    source!("globals").each_variant(context, |module| {
        let output = context.zeros::<u32>(14)?;
        let kernel = module.function("touch_globals")?;
        kernel.run(1, 32, args![&output])?;
        let mut want = vec![2, 3, 5, 7, 11, 13, 17, 19];
        want.extend([1.5f32, -2.0, 0.25, 1e10].map(f32::to_bits));
        want.extend([41, 258]);
        compare::equal(&output.read()?, &want)?;
        let (counter, bytes) = module.global("counter")?;
        ensure!(bytes == 4, "counter has {bytes} bytes");
        let mut value = 0i32;
        context.cuMemcpyDtoH_v2((&raw mut value).cast(), counter, 4).ok()?;
        ensure!(value == 42, "counter is {value}");
        let (untouched, bytes) = module.global("untouched")?;
        ensure!(bytes == 800, "untouched has {bytes} bytes");
        let mut last = 0u64;
        context.cuMemcpyDtoH_v2((&raw mut last).cast(), untouched + 792, 8).ok()?;
        ensure!(last == 7, "untouched[99] is {last}");
        // What the host writes, constants included, the next launch sees.
        let (primes, bytes) = module.global("primes")?;
        ensure!(bytes == 32, "primes has {bytes} bytes");
        let new = [23u32, 29, 31, 37, 41, 43, 47, 53];
        context.cuMemcpyHtoD_v2(primes, new.as_ptr().cast(), 32).ok()?;
        kernel.run(1, 32, args![&output])?;
        compare::equal(&output.read()?[..8], &new)
    })
}

fn own_variables(context: &Context<'_>) -> Result<()> {
    let text = source!("globals").usual();
    let (one, two) = (Module::load(context, text)?, Module::load(context, text)?);
    let output = context.zeros::<u32>(14)?;
    one.function("touch_globals")?.run(1, 32, args![&output])?;
    one.function("touch_globals")?.run(1, 32, args![&output])?;
    ensure!(output.read()?[12] == 42, "the second launch counts on");
    two.function("touch_globals")?.run(1, 32, args![&output])?;
    ensure!(output.read()?[12] == 41, "the second module begins anew");
    ensure!(one.global("counter")?.0 != two.global("counter")?.0);
    Ok(())
}

fn lookup(context: &Context<'_>) -> Result<()> {
    let module = Module::load(context, source!("globals").usual())?;
    let mut function = ptr::null_mut();
    context
        .cuModuleGetFunction(&mut function, module.handle(), c"no_such_kernel".as_ptr())
        .is(Code::NOT_FOUND)?;
    // A variable is not a function, nor the other way round.
    context.cuModuleGetFunction(&mut function, module.handle(), c"counter".as_ptr()).is(Code::NOT_FOUND)?;
    let (mut address, mut bytes) = (0, 0);
    let name = c"no_such_variable".as_ptr();
    context.cuModuleGetGlobal_v2(&mut address, &mut bytes, module.handle(), name).is(Code::NOT_FOUND)?;
    // That name exists but is no variable, for which there is another code.
    let name = c"touch_globals".as_ptr();
    context.cuModuleGetGlobal_v2(&mut address, &mut bytes, module.handle(), name).is(Code::INVALID_VALUE)?;
    // Either output may be left out.
    let name = c"counter".as_ptr();
    context.cuModuleGetGlobal_v2(&mut address, ptr::null_mut(), module.handle(), name).ok()?;
    context.cuModuleGetGlobal_v2(ptr::null_mut(), &mut bytes, module.handle(), name).ok()?;
    ensure!(bytes == 4 && address != 0);
    let mut owner = ptr::null_mut();
    context.cuFuncGetModule(&mut owner, module.function("touch_globals")?.handle()).ok()?;
    ensure!(owner == module.handle(), "a function of another module");
    Ok(())
}

fn listing(context: &Context<'_>) -> Result<()> {
    let module = Module::load(context, source!("calls").usual())?;
    let mut count = 0;
    context.cuModuleGetFunctionCount(&mut count, module.handle()).ok()?;
    ensure!(count == 4, "{count} kernels");
    let mut functions = [ptr::null_mut(); 4];
    context.cuModuleEnumerateFunctions(functions.as_mut_ptr(), 4, module.handle()).ok()?;
    let mut names = Vec::new();
    for function in functions {
        let mut name: *const c_char = ptr::null();
        context.cuFuncGetName(&mut name, function).ok()?;
        names.push(text(name));
    }
    names.sort_unstable();
    compare::equal(
        &names,
        &["function_pointers", "jump_table", "recursion", "virtual_functions"].map(String::from),
    )
}

/// A copy of a C string that the driver answered.
fn text(name: *const c_char) -> String {
    // SAFETY: only called with a string of a call that succeeded.
    unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()
}

fn from_file(context: &Context<'_>) -> Result<()> {
    let path = std::env::temp_dir().join(format!("ebb-conformance-{}.ptx", std::process::id()));
    std::fs::write(&path, source!("vector_add").usual().trim_end_matches('\0'))?;
    let name = CString::new(path.as_os_str().as_encoded_bytes())?;
    let mut module = ptr::null_mut();
    let answer = context.cuModuleLoad(&mut module, name.as_ptr());
    std::fs::remove_file(&path).context("cannot remove the test's own file")?;
    answer.ok()?;
    let mut function = ptr::null_mut();
    context.cuModuleGetFunction(&mut function, module, c"vector_add".as_ptr()).ok()?;
    context.cuModuleUnload(module).ok()?;
    context.cuModuleLoad(&mut module, c"/nonexistent/file.ptx".as_ptr()).is(Code::FILE_NOT_FOUND)
}

fn load(context: &Context<'_>, image: &[u8]) -> Result<CUmodule> {
    let mut module = ptr::null_mut();
    context.cuModuleLoadData(&mut module, image.as_ptr().cast()).ok()?;
    Ok(module)
}

fn fatbin(context: &Context<'_>, image: &[u8]) -> Result<()> {
    let module = load(context, image)?;
    run_stencil(context, module)?;
    context.cuModuleUnload(module).ok()?;
    // And by the function made for it.
    let mut module = ptr::null_mut();
    context.cuModuleLoadFatBinary(&mut module, image.as_ptr().cast()).ok()?;
    run_stencil(context, module)?;
    context.cuModuleUnload(module).ok()
}

/// One row of a constant field: the middle keeps its value, the borders lose what the halo lacks.
fn run_stencil(context: &Context<'_>, module: CUmodule) -> Result<()> {
    let mut function = ptr::null_mut();
    context.cuModuleGetFunction(&mut function, module, c"stencil".as_ptr()).ok()?;
    let (input, output) = (context.buffer(&[1.0f32; 9])?, context.zeros::<f32>(9)?);
    let mut arguments = args![&input, &output, 3i32, 3i32];
    let mut pointers = arguments.pointers();
    let (list, null) = (pointers.as_mut_ptr(), ptr::null_mut());
    context.cuLaunchKernel(function, 1, 1, 1, 32, 8, 1, 0, null, list, ptr::null_mut()).ok()?;
    compare::equal(&output.read()?, &[0.75, 0.875, 0.75, 0.875, 1.0, 0.875, 0.75, 0.875, 0.75])
}

fn wrapper(context: &Context<'_>) -> Result<()> {
    // What nvcc puts into host programs: a small struct that points to the container. The runtime follows the
    // pointer by itself; the driver does not, whichever call is given the struct.
    #[repr(C)]
    struct Wrapper {
        magic: u32,
        version: u32,
        data: *const u8,
        more: *const u8,
    }
    let wrapped = Wrapper { magic: 0x4662_43b1, version: 1, data: ZSTD.as_ptr(), more: ptr::null() };
    let image: *const c_void = (&raw const wrapped).cast();
    let mut module = ptr::null_mut();
    context.cuModuleLoadData(&mut module, image).is(Code::INVALID_IMAGE)?;
    context.cuModuleLoadFatBinary(&mut module, image).is(Code::INVALID_IMAGE)
}

fn foreign(context: &Context<'_>) -> Result<()> {
    let mut module = ptr::null_mut();
    context.cuModuleLoadData(&mut module, FOREIGN.as_ptr().cast()).is(Code::NO_BINARY_FOR_GPU)?;
    context.cuModuleLoadData(&mut module, FOREIGN_CUBIN.as_ptr().cast()).is(Code::NO_BINARY_FOR_GPU)
}

fn attributes(context: &Context<'_>) -> Result<()> {
    source!("params").each_variant(context, |module| {
        let get = |name: &str, which| -> Result<i32> {
            let mut value = -1;
            context.cuFuncGetAttribute(&mut value, which, module.function(name)?.handle()).ok()?;
            Ok(value)
        };
        ensure!(get("bounded", CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)? == 128);
        ensure!(get("mixed", CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)? == 1024);
        let registers = get("mixed", CU_FUNC_ATTRIBUTE_NUM_REGS)?;
        ensure!((1..=255).contains(&registers), "{registers} registers");
        ensure!(get("mixed", CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)? == 0);
        ensure!(get("mixed", CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES)? >= 0);
        ensure!(get("mixed", CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)? >= 0);
        let version = get("mixed", CU_FUNC_ATTRIBUTE_PTX_VERSION)?;
        ensure!(version == 80 || version == 90, "PTX version {version}");
        ensure!(get("mixed", CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)? == 48 * 1024);
        let handle = module.function("mixed")?.handle();
        let (mut value, shared) = (0, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
        context.cuFuncSetAttribute(handle, shared, 100 * 1024).ok()?;
        context.cuFuncGetAttribute(&mut value, shared, handle).ok()?;
        ensure!(value == 100 * 1024, "set 100 KiB, got {value}");
        context.cuFuncSetAttribute(handle, shared, 10 << 20).is(Code::INVALID_VALUE)?;
        context.cuFuncSetAttribute(handle, CU_FUNC_ATTRIBUTE_NUM_REGS, 10).is(Code::INVALID_VALUE)?;
        context.cuFuncGetAttribute(&mut value, CUfunction_attribute_enum(999), handle).is(Code::INVALID_VALUE)
    })?;
    let module = Module::load(context, source!("matmul").usual())?;
    let mut shared = 0;
    let handle = module.function("matmul")?.handle();
    context.cuFuncGetAttribute(&mut shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, handle).ok()?;
    ensure!(shared == 4 * 16 * (16 + 17), "{shared} bytes of static shared memory");
    Ok(())
}

fn parameter_info(context: &Context<'_>) -> Result<()> {
    source!("params").each_variant(context, |module| {
        let function = module.function("mixed")?.handle();
        let want = [(0, 1), (2, 2), (4, 4), (8, 8), (16, 4), (24, 8), (32, 40), (72, 8), (80, 8)];
        for (index, want) in want.into_iter().enumerate() {
            let (mut offset, mut size) = (99, 99);
            context.cuFuncGetParamInfo(function, index, &mut offset, &mut size).ok()?;
            ensure!((offset, size) == want, "parameter {index}: ({offset}, {size}), wanted {want:?}");
        }
        let (mut offset, mut size) = (99, 99);
        context.cuFuncGetParamInfo(function, 9, &mut offset, &mut size).is(Code::INVALID_VALUE)?;
        let none = module.function("no_parameters")?.handle();
        context.cuFuncGetParamInfo(none, 0, &mut offset, &mut size).is(Code::INVALID_VALUE)
    })
}

fn jit_log(context: &Context<'_>) -> Result<()> {
    let mut log = [0u8; 4096];
    let mut options = [CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
    let mut values: [*mut c_void; 2] = [log.as_mut_ptr().cast(), ptr::without_provenance_mut(log.len())];
    let good = source!("vector_add").usual();
    let mut module = ptr::null_mut();
    let (names, list) = (options.as_mut_ptr(), values.as_mut_ptr());
    context.cuModuleLoadDataEx(&mut module, good.as_ptr().cast(), 2, names, list).ok()?;
    context.cuModuleUnload(module).ok()?;
    let bad = good.replace("add.f32", "frobnicate.f32").replace("add.rn.f32", "frobnicate.f32");
    ensure!(bad != good, "the kernel no longer adds");
    values = [log.as_mut_ptr().cast(), ptr::without_provenance_mut(log.len())];
    let list = values.as_mut_ptr();
    context.cuModuleLoadDataEx(&mut module, bad.as_ptr().cast(), 2, names, list).is(Code::INVALID_PTX)?;
    let end = log.iter().position(|&byte| byte == 0).context("the log has no end")?;
    let message = String::from_utf8_lossy(&log[..end]).into_owned();
    println!("note: the log says {:?}", message.lines().next().unwrap_or_default());
    ensure!(message.contains("frobnicate") || message.contains("line"), "the log says {message:?}");
    Ok(())
}

fn link_parts(context: &Context<'_>, parts: &[&str]) -> Result<Vec<u8>> {
    let mut state = ptr::null_mut();
    context.cuLinkCreate_v2(0, ptr::null_mut(), ptr::null_mut(), &mut state).ok()?;
    for (index, part) in parts.iter().enumerate() {
        let name = CString::new(format!("part{index}.ptx"))?;
        let data = part.as_ptr().cast_mut().cast();
        let none = ptr::null_mut();
        context
            .cuLinkAddData_v2(
                state,
                CU_JIT_INPUT_PTX,
                data,
                part.len(),
                name.as_ptr(),
                0,
                none,
                ptr::null_mut(),
            )
            .ok()?;
    }
    let (mut image, mut size) = (ptr::null_mut::<c_void>(), 0);
    let answer = context.cuLinkComplete(state, &mut image, &mut size);
    let bytes = if answer.code == Code::SUCCESS {
        // SAFETY: on success the state owns an image of this size until it is destroyed.
        unsafe { std::slice::from_raw_parts(image.cast::<u8>(), size) }.to_vec()
    } else {
        Vec::new()
    };
    context.cuLinkDestroy(state).ok()?;
    answer.ok()?;
    Ok(bytes)
}

fn link(context: &Context<'_>) -> Result<()> {
    let want: Vec<u32> = (0..32).map(|i| i * 3 + 200).collect();
    let (callers, callees) = (source!("link_caller").texts, source!("link_callee").texts);
    for (caller, callee) in callers.iter().zip(&callees) {
        for order in [[caller.ptx, callee.ptx], [callee.ptx, caller.ptx]] {
            let image = link_parts(context, &order).with_context(|| caller.variant)?;
            ensure!(!image.is_empty(), "an empty image");
            let module = load(context, &image)?;
            let mut function = ptr::null_mut();
            context.cuModuleGetFunction(&mut function, module, c"linked".as_ptr()).ok()?;
            let output = context.zeros::<u32>(32)?;
            let mut arguments = args![&output];
            let mut pointers = arguments.pointers();
            let (list, null) = (pointers.as_mut_ptr(), ptr::null_mut());
            context.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, null, list, ptr::null_mut()).ok()?;
            compare::equal(&output.read()?, &want)?;
            context.cuModuleUnload(module).ok()?;
        }
    }
    Ok(())
}

fn link_unresolved(context: &Context<'_>) -> Result<()> {
    let lonely = source!("link_caller").usual();
    let result = link_parts(context, &[lonely]);
    ensure!(result.is_err(), "linking without the callee succeeded");
    let mut state = ptr::null_mut();
    context.cuLinkCreate_v2(0, ptr::null_mut(), ptr::null_mut(), &mut state).ok()?;
    let text = c"this is not PTX";
    let (data, bytes, null) = (text.as_ptr().cast_mut().cast(), text.count_bytes() + 1, ptr::null_mut());
    let answer = context.cuLinkAddData_v2(
        state,
        CU_JIT_INPUT_PTX,
        data,
        bytes,
        c"x".as_ptr(),
        0,
        null,
        ptr::null_mut(),
    );
    context.cuLinkDestroy(state).ok()?;
    answer.is(Code::INVALID_IMAGE)
}

fn library(context: &Context<'_>) -> Result<()> {
    let text = source!("globals").usual();
    let mut library = ptr::null_mut();
    let (none, nothing) = (ptr::null_mut(), ptr::null_mut());
    let (options, values) = (ptr::null_mut(), ptr::null_mut());
    context
        .cuLibraryLoadData(&mut library, text.as_ptr().cast(), none, nothing, 0, options, values, 0)
        .ok()?;
    let mut count = 0;
    context.cuLibraryGetKernelCount(&mut count, library).ok()?;
    ensure!(count == 1, "{count} kernels");
    let mut kernel = ptr::null_mut();
    context.cuLibraryGetKernel(&mut kernel, library, c"touch_globals".as_ptr()).ok()?;
    context.cuLibraryGetKernel(&mut kernel, library, c"nothing".as_ptr()).is(Code::NOT_FOUND)?;
    context.cuLibraryGetKernel(&mut kernel, library, c"touch_globals".as_ptr()).ok()?;
    let mut function = ptr::null_mut();
    context.cuKernelGetFunction(&mut function, kernel).ok()?;
    let output = context.zeros::<u32>(14)?;
    let mut arguments = args![&output];
    let mut pointers = arguments.pointers();
    let (list, null) = (pointers.as_mut_ptr(), ptr::null_mut());
    context.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, null, list, ptr::null_mut()).ok()?;
    ensure!(output.read()?[12] == 41);
    let (mut address, mut bytes) = (0, 0);
    context.cuLibraryGetGlobal(&mut address, &mut bytes, library, c"counter".as_ptr()).ok()?;
    let mut counter = 0i32;
    context.cuMemcpyDtoH_v2((&raw mut counter).cast(), address, 4).ok()?;
    ensure!(bytes == 4 && counter == 42, "counter has {bytes} bytes and is {counter}");
    let mut module = ptr::null_mut();
    context.cuLibraryGetModule(&mut module, library).ok()?;
    let mut same = ptr::null_mut();
    context.cuModuleGetFunction(&mut same, module, c"touch_globals".as_ptr()).ok()?;
    context.cuLibraryUnload(library).ok()
}

fn library_kernel(context: &Context<'_>) -> Result<()> {
    let text = source!("vector_add").usual();
    let mut library = ptr::null_mut();
    let null = ptr::null_mut;
    context
        .cuLibraryLoadData(
            &mut library,
            text.as_ptr().cast(),
            ptr::null_mut(),
            null(),
            0,
            ptr::null_mut(),
            null(),
            0,
        )
        .ok()?;
    let mut kernel: CUkernel = ptr::null_mut();
    context.cuLibraryGetKernel(&mut kernel, library, c"vector_add".as_ptr()).ok()?;
    let mut name: *const c_char = ptr::null();
    context.cuKernelGetName(&mut name, kernel).ok()?;
    ensure!(self::text(name) == "vector_add");
    let mut threads = 0;
    let which = CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK;
    context.cuKernelGetAttribute(&mut threads, which, kernel, context.device()).ok()?;
    ensure!(threads == 1024, "{threads} threads");
    let (mut offset, mut size) = (9, 9);
    context.cuKernelGetParamInfo(kernel, 3, &mut offset, &mut size).ok()?;
    ensure!((offset, size) == (24, 4), "parameter 3: ({offset}, {size})");
    // A kernel handle may be launched where a function is asked for.
    let (a, b, c) =
        (context.buffer(&[1.0f32, 2.0])?, context.buffer(&[3.0f32, 4.0])?, context.zeros::<f32>(2)?);
    let mut arguments = args![&a, &b, &c, 2i32];
    let mut pointers = arguments.pointers();
    let list = pointers.as_mut_ptr();
    context.cuLaunchKernel(kernel.cast(), 1, 1, 1, 32, 1, 1, 0, null().cast(), list, ptr::null_mut()).ok()?;
    compare::equal(&c.read()?, &[4.0, 6.0])?;
    context.cuLibraryUnload(library).ok()
}

fn unload(context: &Context<'_>) -> Result<()> {
    let (mut free, mut total, mut later) = (0, 0, 0);
    let text = source!("globals").usual();
    for round in 0..200 {
        drop(Module::load(context, text)?);
        if round == 20 {
            context.cuMemGetInfo_v2(&mut free, &mut total).ok()?;
        }
    }
    context.cuMemGetInfo_v2(&mut later, &mut total).ok()?;
    // Two hundred copies that were never given back would show; other processes may take a little meanwhile.
    println!("note: {} KiB less free after 180 loads and unloads", free.saturating_sub(later) >> 10);
    Ok(())
}
