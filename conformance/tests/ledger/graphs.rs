//! Graphs: a launch of one is as many kernels as it has nodes that are switched on, each under its own name.

use std::ffi::c_void;
use std::ptr;

use anyhow::Result;
use conformance::answer::Code;
use conformance::context::Context;
use conformance::driver::*;
use telemetry::Counter::*;
use telemetry::Note;

use crate::Section;
use crate::program::{Image, Kernel, Program, with_arguments};

pub const SECTIONS: &[Section] = &[
    Section::new("graphs/explicit_nodes_and_child_graphs", explicit),
    Section::new("graphs/every_way_to_instantiate", instantiations),
    Section::new("graphs/updated_as_a_whole", updated),
    Section::new("graphs/nodes_switched_off_and_on", switched),
    Section::new("graphs/switched_off_nodes_stay_so_in_an_update", switched_and_updated),
    Section::new("graphs/nodes_given_another_kernel", other_kernels),
    Section::new("graphs/child_graphs_replaced", other_children),
    Section::new("graphs/instantiated_again_and_again", again),
    Section::new("graphs/of_many_different_kernels", many),
    Section::new("graphs/of_more_kernels_than_a_ledger_lists", unlisted),
];

/// What these programs work with.
struct Tools<'a, 'd> {
    program: &'a Program<'d>,
    cuda: &'a Context<'d>,
    alpha: Kernel,
    beta: Kernel,
}

fn with_tools(program: &Program<'_>, work: impl FnOnce(&Tools<'_, '_>) -> Result<()>) -> Result<()> {
    program.in_context(|cuda| {
        let image = Image::usual("one");
        let module = program.load(&image)?;
        let alpha = program.function(module, &image, "alpha")?;
        let beta = program.function(module, &image, "beta")?;
        work(&Tools { program, cuda, alpha, beta })?;
        cuda.synchronize()?;
        program.did(ContextSynchronisations, 1);
        program.unload(module)
    })
}

fn parameters(kernel: &Kernel, list: *mut *mut c_void) -> CUDA_KERNEL_NODE_PARAMS {
    CUDA_KERNEL_NODE_PARAMS {
        func: kernel.handle(),
        gridDimX: 1,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 1,
        blockDimY: 1,
        blockDimZ: 1,
        kernelParams: list,
        ..Default::default()
    }
}

impl Tools<'_, '_> {
    fn graph(&self) -> Result<CUgraph> {
        let mut graph = ptr::null_mut();
        self.cuda.cuGraphCreate(&mut graph, 0).ok()?;
        Ok(graph)
    }

    fn node(&self, graph: CUgraph, kernel: &Kernel) -> Result<CUgraphNode> {
        let mut node = ptr::null_mut();
        with_arguments(|list| {
            let parameters = parameters(kernel, list);
            self.cuda.cuGraphAddKernelNode_v2(&mut node, graph, ptr::null(), 0, &parameters).ok()
        })?;
        Ok(node)
    }

    fn graph_of(&self, kernels: &[&Kernel]) -> Result<(CUgraph, Vec<CUgraphNode>)> {
        let graph = self.graph()?;
        let nodes = kernels.iter().map(|kernel| self.node(graph, kernel)).collect::<Result<_>>()?;
        Ok((graph, nodes))
    }

    fn instantiate(&self, graph: CUgraph) -> Result<CUgraphExec> {
        let mut exec = ptr::null_mut();
        self.cuda.cuGraphInstantiateWithFlags(&mut exec, graph, 0).ok()?;
        self.program.did(GraphsInstantiated, 1);
        Ok(exec)
    }

    /// Launches a graph that runs each kernel so often.
    fn launch(&self, exec: CUgraphExec, kernels: &[(&Kernel, u64)]) -> Result<()> {
        self.cuda.cuGraphLaunch(exec, ptr::null_mut()).ok()?;
        self.program.did(GraphOnDefault, 1);
        let ran = kernels.iter().filter(|(_, times)| *times > 0);
        ran.for_each(|(kernel, times)| self.program.ran_in_graphs(kernel, *times));
        Ok(())
    }

    fn update(&self, exec: CUgraphExec, graph: CUgraph) -> Result<()> {
        let mut info = CUgraphExecUpdateResultInfo::default();
        self.cuda.cuGraphExecUpdate_v2(exec, graph, &mut info).ok()?;
        self.program.did(GraphsUpdated, 1);
        Ok(())
    }

    fn switch(&self, exec: CUgraphExec, node: CUgraphNode, on: bool) -> Result<()> {
        self.cuda.cuGraphNodeSetEnabled(exec, node, u32::from(on)).ok()
    }

    fn destroy(&self, exec: CUgraphExec, graphs: &[CUgraph]) -> Result<()> {
        self.cuda.cuGraphExecDestroy(exec).ok()?;
        graphs.iter().try_for_each(|graph| self.cuda.cuGraphDestroy(*graph).ok())
    }
}

unsafe extern "C" fn nothing(_: *mut c_void) {}

fn explicit(program: &Program<'_>) -> Result<()> {
    with_tools(program, |tools| {
        let (cuda, mut node) = (tools.cuda, ptr::null_mut());
        let (inmost, _) = tools.graph_of(&[&tools.beta, &tools.beta, &tools.alpha])?;
        let (inner, _) = tools.graph_of(&[&tools.alpha])?;
        for _ in 0..2 {
            cuda.cuGraphAddChildGraphNode(&mut node, inner, ptr::null(), 0, inmost).ok()?;
        }
        let (outer, _) = tools.graph_of(&[&tools.alpha, &tools.alpha])?;
        cuda.cuGraphAddChildGraphNode(&mut node, outer, ptr::null(), 0, inner).ok()?;
        // What is no kernel is counted as none.
        let host = CUDA_HOST_NODE_PARAMS { fn_: Some(nothing), userData: ptr::null_mut() };
        cuda.cuGraphAddHostNode(&mut node, outer, ptr::null(), 0, &host).ok()?;
        cuda.cuGraphAddEmptyNode(&mut node, outer, ptr::null(), 0).ok()?;
        let exec = tools.instantiate(outer)?;
        for _ in 0..3 {
            tools.launch(exec, &[(&tools.alpha, 2 + 1 + 2), (&tools.beta, 4)])?;
        }
        tools.destroy(exec, &[outer, inner, inmost])
    })
}

fn instantiations(program: &Program<'_>) -> Result<()> {
    with_tools(program, |tools| {
        let (cuda, null) = (tools.cuda, ptr::null_mut());
        let (graph, _) = tools.graph_of(&[&tools.alpha, &tools.beta, &tools.beta])?;
        let mut execs = [ptr::null_mut(); 4];
        cuda.cuGraphInstantiateWithFlags(&mut execs[0], graph, 0).ok()?;
        cuda.cuGraphInstantiate_v2(&mut execs[1], graph, ptr::null_mut(), null, 0).ok()?;
        cuda.cuGraphInstantiate(&mut execs[2], graph, ptr::null_mut(), null, 0).ok()?;
        let mut parameters = CUDA_GRAPH_INSTANTIATE_PARAMS::default();
        cuda.cuGraphInstantiateWithParams(&mut execs[3], graph, &mut parameters).ok()?;
        program.did(GraphsInstantiated, 4);
        // The graph is of no account afterwards.
        cuda.cuGraphDestroy(graph).ok()?;
        for exec in execs {
            tools.launch(exec, &[(&tools.alpha, 1), (&tools.beta, 2)])?;
            tools.destroy(exec, &[])?;
        }
        Ok(())
    })
}

fn updated(program: &Program<'_>) -> Result<()> {
    with_tools(program, |tools| {
        let (alpha, beta) = (&tools.alpha, &tools.beta);
        let (first, _) = tools.graph_of(&[alpha, alpha, beta])?;
        let (second, _) = tools.graph_of(&[beta, alpha, beta])?;
        let (longer, _) = tools.graph_of(&[beta, beta, beta, beta])?;
        let exec = tools.instantiate(first)?;
        tools.launch(exec, &[(alpha, 2), (beta, 1)])?;
        tools.update(exec, second)?;
        tools.launch(exec, &[(alpha, 1), (beta, 2)])?;
        // An update that is refused changes nothing and is none.
        let mut info = CUgraphExecUpdateResultInfo::default();
        let answer = tools.cuda.cuGraphExecUpdate_v2(exec, longer, &mut info);
        answer.is(Code::GRAPH_EXEC_UPDATE_FAILURE)?;
        tools.launch(exec, &[(alpha, 1), (beta, 2)])?;
        let (mut node, mut result) = (ptr::null_mut(), CU_GRAPH_EXEC_UPDATE_ERROR);
        tools.cuda.cuGraphExecUpdate(exec, first, &mut node, &mut result).ok()?;
        program.did(GraphsUpdated, 1);
        tools.launch(exec, &[(alpha, 2), (beta, 1)])?;
        tools.destroy(exec, &[first, second, longer])
    })
}

fn switched(program: &Program<'_>) -> Result<()> {
    with_tools(program, |tools| {
        let (alpha, beta) = (&tools.alpha, &tools.beta);
        let (graph, nodes) = tools.graph_of(&[alpha, alpha, beta])?;
        let (exec, other) = (tools.instantiate(graph)?, tools.instantiate(graph)?);
        for (node, on, kernels) in [
            (0, false, [1, 1]),
            (0, false, [1, 1]),
            (2, false, [1, 0]),
            (0, true, [2, 0]),
            (0, true, [2, 0]),
            (1, true, [2, 0]),
            (0, false, [1, 0]),
            (1, false, [0, 0]),
            (2, true, [0, 1]),
        ] {
            tools.switch(exec, nodes[node], on)?;
            tools.launch(exec, &[(alpha, kernels[0]), (beta, kernels[1])])?;
        }
        // The other one was made of the same graph and knows nothing of this.
        tools.launch(other, &[(alpha, 2), (beta, 1)])?;
        tools.destroy(exec, &[])?;
        tools.destroy(other, &[graph])
    })
}

fn switched_and_updated(program: &Program<'_>) -> Result<()> {
    with_tools(program, |tools| {
        let (alpha, beta) = (&tools.alpha, &tools.beta);
        let (first, nodes) = tools.graph_of(&[alpha, beta])?;
        let (second, newer) = tools.graph_of(&[beta, beta])?;
        let exec = tools.instantiate(first)?;
        tools.switch(exec, nodes[0], false)?;
        tools.launch(exec, &[(beta, 1)])?;
        tools.update(exec, second)?;
        tools.launch(exec, &[(beta, 1)])?;
        tools.switch(exec, newer[0], true)?;
        tools.launch(exec, &[(beta, 2)])?;
        tools.destroy(exec, &[first, second])
    })
}

fn other_kernels(program: &Program<'_>) -> Result<()> {
    with_tools(program, |tools| {
        let (cuda, alpha, beta) = (tools.cuda, &tools.alpha, &tools.beta);
        let (graph, nodes) = tools.graph_of(&[alpha, alpha])?;
        let exec = tools.instantiate(graph)?;
        let give = |node: CUgraphNode, kernel: &Kernel| {
            with_arguments(|list| {
                cuda.cuGraphExecKernelNodeSetParams_v2(exec, node, &parameters(kernel, list)).ok()
            })
        };
        give(nodes[0], beta)?;
        tools.launch(exec, &[(alpha, 1), (beta, 1)])?;
        tools.switch(exec, nodes[0], false)?;
        tools.launch(exec, &[(alpha, 1)])?;
        // What a node is given while it is off, it runs when it is on.
        give(nodes[1], beta)?;
        give(nodes[0], alpha)?;
        tools.launch(exec, &[(beta, 1)])?;
        tools.switch(exec, nodes[0], true)?;
        tools.launch(exec, &[(alpha, 1), (beta, 1)])?;
        // The graph itself is another matter: what is made of it already does not change with it.
        with_arguments(|list| cuda.cuGraphKernelNodeSetParams_v2(nodes[0], &parameters(beta, list)).ok())?;
        tools.switch(exec, nodes[0], false)?;
        tools.launch(exec, &[(beta, 1)])?;
        let mut any = CUgraphNodeParams { type_: CU_GRAPH_NODE_TYPE_KERNEL, ..Default::default() };
        with_arguments(|list| {
            any.__bindgen_anon_1.kernel = CUDA_KERNEL_NODE_PARAMS_v3 {
                func: alpha.handle(),
                gridDimX: 1,
                gridDimY: 1,
                gridDimZ: 1,
                blockDimX: 1,
                blockDimY: 1,
                blockDimZ: 1,
                kernelParams: list,
                ..Default::default()
            };
            cuda.cuGraphExecNodeSetParams(exec, nodes[1], &mut any).ok()
        })?;
        tools.launch(exec, &[(alpha, 1)])?;
        tools.destroy(exec, &[graph])
    })
}

fn other_children(program: &Program<'_>) -> Result<()> {
    with_tools(program, |tools| {
        let (cuda, alpha, beta) = (tools.cuda, &tools.alpha, &tools.beta);
        let (inner, _) = tools.graph_of(&[alpha, alpha])?;
        let (other, _) = tools.graph_of(&[beta, alpha])?;
        let (outer, _) = tools.graph_of(&[alpha, beta])?;
        let mut children = [ptr::null_mut(); 2];
        for child in &mut children {
            cuda.cuGraphAddChildGraphNode(child, outer, ptr::null(), 0, inner).ok()?;
        }
        let exec = tools.instantiate(outer)?;
        tools.launch(exec, &[(alpha, 5), (beta, 1)])?;
        cuda.cuGraphExecChildGraphNodeSetParams(exec, children[1], other).ok()?;
        tools.launch(exec, &[(alpha, 4), (beta, 2)])?;
        cuda.cuGraphExecChildGraphNodeSetParams(exec, children[0], other).ok()?;
        tools.launch(exec, &[(alpha, 3), (beta, 3)])?;
        cuda.cuGraphExecChildGraphNodeSetParams(exec, children[1], inner).ok()?;
        tools.launch(exec, &[(alpha, 4), (beta, 2)])?;
        tools.destroy(exec, &[inner, other, outer])
    })
}

fn again(program: &Program<'_>) -> Result<()> {
    with_tools(program, |tools| {
        let (alpha, beta) = (&tools.alpha, &tools.beta);
        for round in 0..200 {
            let kernels: &[&Kernel] = if round % 2 == 0 { &[alpha, beta, beta] } else { &[alpha] };
            let (graph, nodes) = tools.graph_of(kernels)?;
            let exec = tools.instantiate(graph)?;
            tools.launch(exec, &[(alpha, 1), (beta, if round % 2 == 0 { 2 } else { 0 })])?;
            // Left behind for the next one, if anything were.
            tools.switch(exec, nodes[0], false)?;
            tools.destroy(exec, &[graph])?;
        }
        Ok(())
    })
}

/// So many kernels of no parameters, and their image.
fn crowd(word: &str, count: usize) -> (Image, Vec<String>) {
    let names: Vec<String> = (0..count).map(|number| format!("k{number}")).collect();
    let kernels: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).collect();
    (Image::new(word, &kernels), names)
}

fn many(program: &Program<'_>) -> Result<()> {
    with_tools(program, |tools| {
        let (image, names) = crowd("crowd", 150);
        let module = program.load(&image)?;
        let kernels: Vec<Kernel> =
            names.iter().map(|name| program.function(module, &image, name)).collect::<Result<_>>()?;
        let all: Vec<&Kernel> = kernels.iter().chain(&kernels).collect();
        let (graph, nodes) = tools.graph_of(&all)?;
        let exec = tools.instantiate(graph)?;
        let runs =
            |times: u64| -> Vec<(&Kernel, u64)> { kernels.iter().map(|kernel| (kernel, times)).collect() };
        tools.launch(exec, &runs(2))?;
        for node in &nodes[..150] {
            tools.switch(exec, *node, false)?;
        }
        tools.launch(exec, &runs(1))?;
        for node in &nodes[150..] {
            tools.switch(exec, *node, false)?;
        }
        tools.launch(exec, &[])?;
        tools.destroy(exec, &[graph])?;
        program.unload(module)
    })
}

fn unlisted(program: &Program<'_>) -> Result<()> {
    with_tools(program, |tools| {
        let (image, names) = crowd("crowd", telemetry::KERNELS + 10);
        let module = program.load(&image)?;
        for (number, name) in names.iter().enumerate() {
            let kernel = program.function(module, &image, name)?;
            if number < telemetry::KERNELS {
                program.launch(&kernel, (1, 1, 1), ptr::null_mut(), PlainOnDefault)?;
            } else {
                crate::program::launch(tools.cuda, &kernel, (1, 1, 1), ptr::null_mut())?;
                program.did(PlainOnDefault, 1);
                program.did(KernelsUnlisted, 1);
            }
        }
        program.noted(Note::KernelsOverflow);
        let (listed, late) = ("k7", &names[telemetry::KERNELS + 3]);
        let (listed, late) =
            (program.function(module, &image, listed)?, program.function(module, &image, late)?);
        let (graph, _) = tools.graph_of(&[&listed, &late, &late])?;
        let exec = tools.instantiate(graph)?;
        for _ in 0..3 {
            tools.launch(exec, &[(&listed, 1)])?;
            program.did(KernelsInGraphs, 2);
            program.did(KernelsUnlisted, 2);
        }
        tools.destroy(exec, &[graph])?;
        program.unload(module)
    })
}
