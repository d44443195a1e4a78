//! Code, and every way from it to a handle that can be launched.

use std::ffi::{CStr, CString, c_void};
use std::ptr;

use anyhow::{Result, ensure};
use conformance::context::Context;
use conformance::driver::*;
use conformance::source;
use telemetry::Counter::*;

use crate::Section;
use crate::program::{Image, Kernel, Program};

pub const SECTIONS: &[Section] = &[
    Section::new("modules/same_code_by_every_way", every_way),
    Section::new("modules/other_code_is_another_kernel", other_code),
    Section::new("modules/fat_binaries", fat_binaries),
    Section::new("modules/linked", linked),
    Section::new("modules/every_kind_of_handle", handles),
    Section::new("modules/refused", refused),
];

const DEFAULT: CUstream = ptr::null_mut();

const RAW: &[u8] = include_bytes!("../../kernels/fatbin/stencil.raw.fatbin");
const ZSTD: &[u8] = include_bytes!("../../kernels/fatbin/stencil.zstd.fatbin");
const LZ4: &[u8] = include_bytes!("../../kernels/fatbin/stencil.lz4.fatbin");
const FOREIGN_CUBIN: &[u8] = include_bytes!("../../kernels/fatbin/stencil.foreign.cubin");

fn library(program: &Program<'_>, image: *const c_void) -> Result<CUlibrary> {
    let (mut library, null) = (ptr::null_mut(), ptr::null_mut());
    let (options, values) = (ptr::null_mut(), ptr::null_mut());
    program
        .driver
        .cuLibraryLoadData(&mut library, image, ptr::null_mut(), null, 0, options, values, 0)
        .ok()?;
    Ok(library)
}

fn kernel_of(program: &Program<'_>, library: CUlibrary, image: &Image, name: &CStr) -> Result<Kernel> {
    let mut kernel = ptr::null_mut();
    program.driver.cuLibraryGetKernel(&mut kernel, library, name.as_ptr()).ok()?;
    program.did(KernelsFound, 1);
    Ok(image.kernel(name.to_str()?, kernel))
}

/// All are one module to the ledger, and their kernels one kernel.
fn every_way(program: &Program<'_>) -> Result<()> {
    program.in_context(|cuda| {
        let image = Image::usual("one");
        let file = tempfile::NamedTempFile::new()?;
        std::fs::write(file.path(), image.text.trim_end_matches('\0'))?;
        let path = CString::new(file.path().as_os_str().as_encoded_bytes())?;
        let text: *const c_void = image.text.as_ptr().cast();
        let mut modules = [ptr::null_mut(); 4];
        cuda.cuModuleLoadData(&mut modules[0], text).ok()?;
        cuda.cuModuleLoadData(&mut modules[1], text).ok()?;
        cuda.cuModuleLoadDataEx(&mut modules[2], text, 0, ptr::null_mut(), ptr::null_mut()).ok()?;
        cuda.cuModuleLoad(&mut modules[3], path.as_ptr()).ok()?;
        let (mut from_file, null) = (ptr::null_mut(), ptr::null_mut());
        let (options, values) = (ptr::null_mut(), ptr::null_mut());
        cuda.cuLibraryLoadFromFile(
            &mut from_file,
            path.as_ptr(),
            ptr::null_mut(),
            null,
            0,
            options,
            values,
            0,
        )
        .ok()?;
        let libraries = [library(program, text)?, from_file];
        program.did(ModulesPtx, 6);
        for module in modules {
            let alpha = program.function(module, &image, "alpha")?;
            program.launch(&alpha, (2, 1, 1), DEFAULT, PlainOnDefault)?;
        }
        for library in libraries {
            let alpha = kernel_of(program, library, &image, c"alpha")?;
            program.launch(&alpha, (3, 1, 1), DEFAULT, PlainOnDefault)?;
        }
        modules.into_iter().try_for_each(|module| program.unload(module))?;
        for library in libraries {
            cuda.cuLibraryUnload(library).ok()?;
            program.did(ModulesUnloaded, 1);
        }
        Ok(())
    })
}

fn other_code(program: &Program<'_>) -> Result<()> {
    program.in_context(|_| {
        for (times, word) in ["one", "two", "six"].into_iter().enumerate() {
            let image = Image::usual(word);
            let module = program.load(&image)?;
            for name in ["alpha", "beta"] {
                let kernel = program.function(module, &image, name)?;
                for _ in 0..=times {
                    program.launch(&kernel, (1, 1, 1), DEFAULT, PlainOnDefault)?;
                }
            }
            program.unload(module)?;
        }
        Ok(())
    })
}

fn fat_binaries(program: &Program<'_>) -> Result<()> {
    program.in_context(|cuda| {
        for (times, (word, image)) in [("raw", RAW), ("zstd", ZSTD), ("lz4", LZ4)].into_iter().enumerate() {
            let mut modules = [ptr::null_mut(); 2];
            cuda.cuModuleLoadData(&mut modules[0], image.as_ptr().cast()).ok()?;
            cuda.cuModuleLoadFatBinary(&mut modules[1], image.as_ptr().cast()).ok()?;
            program.did(ModulesFatbin, 2);
            for module in modules {
                let mut function = ptr::null_mut();
                cuda.cuModuleGetFunction(&mut function, module, c"stencil".as_ptr()).ok()?;
                program.did(FunctionsFound, 1);
                // Two pointers and two numbers; with a width of 0 there is nothing to do.
                let stencil = Kernel::foreign(function, "stencil", word, (24, 4));
                for _ in 0..=times {
                    program.launch(&stencil, (1, 1, 1), DEFAULT, PlainOnDefault)?;
                }
                program.unload(module)?;
            }
        }
        Ok(())
    })
}

fn linked(program: &Program<'_>) -> Result<()> {
    program.in_context(|cuda| {
        let mut state = ptr::null_mut();
        cuda.cuLinkCreate_v2(0, ptr::null_mut(), ptr::null_mut(), &mut state).ok()?;
        for part in [source!("link_caller").usual(), source!("link_callee").usual()] {
            let (data, none, nothing) = (part.as_ptr().cast_mut().cast(), ptr::null_mut(), ptr::null_mut());
            let kind = CU_JIT_INPUT_PTX;
            cuda.cuLinkAddData_v2(state, kind, data, part.len(), c"part".as_ptr(), 0, none, nothing).ok()?;
        }
        let (mut image, mut size) = (ptr::null_mut(), 0);
        cuda.cuLinkComplete(state, &mut image, &mut size).ok()?;
        program.did(LinksCompleted, 1);
        let mut module = ptr::null_mut();
        cuda.cuModuleLoadData(&mut module, image).ok()?;
        // The software GPU links into a form of its own.
        program.did(ModulesOther, 1);
        cuda.cuLinkDestroy(state).ok()?;
        let mut function = ptr::null_mut();
        cuda.cuModuleGetFunction(&mut function, module, c"linked".as_ptr()).ok()?;
        program.did(FunctionsFound, 1);
        let linked = Kernel::foreign(function, "linked", "linked", (8, 1));
        let mut output = 0;
        cuda.cuMemAlloc_v2(&mut output, 128).ok()?;
        program.did(AllocationsDevice, 1);
        program.did(AllocatedDevice, 128);
        let mut list = [(&raw mut output).cast()];
        let (arguments, none) = (list.as_mut_ptr(), ptr::null_mut());
        cuda.cuLaunchKernel(linked.handle(), 1, 1, 1, 32, 1, 1, 0, DEFAULT, arguments, none).ok()?;
        program.launched(&linked, PlainOnDefault, 1);
        cuda.cuMemFree_v2(output).ok()?;
        program.did(Frees, 1);
        program.unload(module)
    })
}

fn handles(program: &Program<'_>) -> Result<()> {
    program.in_context(|cuda| {
        let image = Image::usual("one");
        let module = program.load(&image)?;
        let library = library(program, image.text.as_ptr().cast())?;
        program.did(ModulesPtx, 1);
        let mut kernels = vec![
            program.function(module, &image, "alpha")?,
            program.function(module, &image, "alpha")?,
            kernel_of(program, library, &image, c"alpha")?,
            kernel_of(program, library, &image, c"beta")?,
        ];
        let mut function = ptr::null_mut();
        cuda.cuKernelGetFunction(&mut function, kernels[2].handle().cast()).ok()?;
        kernels.push(image.kernel("alpha", function));
        // Two ways to the library's own module, of which the first is told by nothing but a function.
        let (mut inside, mut again) = (ptr::null_mut(), ptr::null_mut());
        cuda.cuFuncGetModule(&mut inside, function).ok()?;
        kernels.push(program.function(inside, &image, "beta")?);
        cuda.cuLibraryGetModule(&mut again, library).ok()?;
        kernels.push(program.function(again, &image, "beta")?);
        kernels.extend(enumerated(program, cuda, &image, module, library)?);
        for kernel in &kernels {
            program.launch(kernel, (1, 1, 1), DEFAULT, PlainOnDefault)?;
        }
        cuda.cuLibraryUnload(library).ok()?;
        program.did(ModulesUnloaded, 1);
        program.unload(module)
    })
}

/// Both lists, in places where there is room for more than there are: what lies behind is nobody's handle.
fn enumerated(
    program: &Program<'_>,
    cuda: &Context<'_>,
    image: &Image,
    module: CUmodule,
    library: CUlibrary,
) -> Result<Vec<Kernel>> {
    const ROOM: usize = 6;
    let rubbish = ptr::without_provenance_mut(0x51);
    let mut functions: [CUfunction; ROOM] = [rubbish; ROOM];
    cuda.cuModuleEnumerateFunctions(functions.as_mut_ptr(), ROOM as u32, module).ok()?;
    let mut kernels: [CUkernel; ROOM] = [rubbish.cast(); ROOM];
    cuda.cuLibraryEnumerateKernels(kernels.as_mut_ptr(), ROOM as u32, library).ok()?;
    program.did(FunctionsEnumerated, 4);
    // And fewer than there are.
    let mut one = [rubbish; 2];
    cuda.cuModuleEnumerateFunctions(one.as_mut_ptr(), 1, module).ok()?;
    program.did(FunctionsEnumerated, 1);
    ensure!(one[1] == rubbish && functions[2] == rubbish, "more handles than were asked for");
    let mut found = Vec::new();
    for function in &functions[..2] {
        let mut name = ptr::null();
        cuda.cuFuncGetName(&mut name, *function).ok()?;
        found.push(image.kernel(text(name)?, *function));
    }
    for kernel in &kernels[..2] {
        let mut name = ptr::null();
        cuda.cuKernelGetName(&mut name, *kernel).ok()?;
        found.push(image.kernel(text(name)?, *kernel));
    }
    Ok(found)
}

fn text(name: *const std::ffi::c_char) -> Result<&'static str> {
    // SAFETY: a name that the driver has just given, of a kernel whose module stays loaded while it is looked at.
    Ok(unsafe { CStr::from_ptr(name) }.to_str()?)
}

/// What does not load is no module, and what is not found no function.
fn refused(program: &Program<'_>) -> Result<()> {
    program.in_context(|cuda| {
        let image = Image::usual("one");
        let module = program.load(&image)?;
        let (mut other, mut function, mut kernel) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        ensure!(cuda.cuModuleLoadData(&mut other, FOREIGN_CUBIN.as_ptr().cast()).ok().is_err());
        ensure!(cuda.cuModuleLoadData(&mut other, c"no code".as_ptr().cast()).ok().is_err());
        ensure!(cuda.cuModuleLoad(&mut other, c"/nowhere".as_ptr()).ok().is_err());
        ensure!(cuda.cuModuleGetFunction(&mut function, module, c"gamma".as_ptr()).ok().is_err());
        ensure!(cuda.cuLibraryGetKernel(&mut kernel, ptr::null_mut(), c"alpha".as_ptr()).ok().is_err());
        ensure!(cuda.cuModuleUnload(ptr::null_mut()).ok().is_err());
        program.unload(module)
    })
}
