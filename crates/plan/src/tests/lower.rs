//! Lowered graphs; names and edges are those in the partition graphs of a TensorFlow 2.21 master.

use super::text::{devices, graph, line, lines, ops, sorted};
use crate::{LowerOptions, Signature, lower, partition, place, prune};
use graph::{DeviceSpec, FlatGraph};

fn options() -> LowerOptions {
    LowerOptions { home: DeviceSpec::parse("/job:worker/replica:0/task:0").unwrap(), conditionals: false }
}

fn lowered(text: &str) -> Option<FlatGraph> {
    lower(&graph(text), &ops(), &options()).unwrap()
}

fn check(text: &str, expected: &str) {
    let graph = lowered(text).expect("nothing was lowered");
    let mut found: Vec<String> = graph.nodes.iter().map(|node| line(&node.def)).collect();
    found.sort();
    assert_eq!(found, sorted(expected));
}

fn check_stays(text: &str) {
    assert!(lowered(text).is_none());
}

const IF: &str = "
    p Placeholder dtype=bool
    x Const
    cond StatelessIf p x Tin=float Tout=float then_branch=then else_branch=else _lower_using_switch_merge=true
    cond/Identity Identity cond
    after NoOp ^cond
    fn then(dbl_x: float) -> dbl: float
      dbl/y Const @/job:worker/task:1
      dbl_0 Mul dbl_x dbl/y:output:0 @/job:worker/task:1
      ret dbl dbl_0:z:0
    end
    fn else(neg_x: float) -> neg: float
      neg_0 Neg neg_x
      ret neg neg_0:y:0
    end";

#[test]
fn a_conditional_becomes_switches_and_merges() {
    check(
        IF,
        "p Placeholder
         x Const
         cond/switch_pred/_2 Switch p p
         cond/pivot_f/_3 Identity cond/switch_pred/_2
         cond/pivot_t/_4 Identity cond/switch_pred/_2:1
         cond/x/_5 Switch x p
         cond/output/_6 Merge Func/cond/then/_0/output/_10 Func/cond/else/_1/output/_14
         cond/branch_executed/_7 Merge cond/pivot_t/_4 cond/pivot_f/_3 ^Func/cond/then/_0/output_control_node/_11 \
           ^Func/cond/else/_1/output_control_node/_15
         cond IdentityN cond/output/_6 ^cond/branch_executed/_7
         cond/Identity Identity cond/output/_6
         after NoOp ^cond/branch_executed/_7
         Func/cond/then/_0/input_control_node/_8 NoOp ^cond/pivot_t/_4
         Func/cond/then/_0/input/_9 Identity cond/x/_5:1 ^Func/cond/then/_0/input_control_node/_8
         cond/then/_0/dbl/y Const ^Func/cond/then/_0/input_control_node/_8
         cond/then/_0/dbl_0 Mul Func/cond/then/_0/input/_9 cond/then/_0/dbl/y
         Func/cond/then/_0/output/_10 Identity cond/then/_0/dbl_0
         Func/cond/then/_0/output_control_node/_11 NoOp ^Func/cond/then/_0/input_control_node/_8
         Func/cond/else/_1/input_control_node/_12 NoOp ^cond/pivot_f/_3
         Func/cond/else/_1/input/_13 Identity cond/x/_5 ^Func/cond/else/_1/input_control_node/_12
         cond/else/_1/neg_0 Neg Func/cond/else/_1/input/_13
         Func/cond/else/_1/output/_14 Identity cond/else/_1/neg_0
         Func/cond/else/_1/output_control_node/_15 NoOp ^Func/cond/else/_1/input_control_node/_12",
    );
}

#[test]
fn a_lowered_conditional_is_cut_as_tensorflow_cuts_it() {
    let graph = lowered(IF).unwrap();
    let devices = devices(&["worker:0", "worker:1"]);
    let placement = place(&graph, &devices, &[], false).unwrap();
    let signature = Signature { fetches: vec!["cond/Identity:0".to_string()], ..Signature::default() };
    let parts = partition(prune(&graph, &signature, &placement, &devices).unwrap(), &devices, &graph, "").unwrap();
    let expected = "
        Func/cond/then/_0/input/_9/_S1 _Recv
        Func/cond/then/_0/input_control_node/_8/_S0 _Recv
        Func/cond/then/_0/input_control_node/_8/ctrl_R0 Identity Func/cond/then/_0/input_control_node/_8/_S0
        Func/cond/then/_0/output/_10 Identity cond/then/_0/dbl_0
        Func/cond/then/_0/output/_10/_S2 _Send Func/cond/then/_0/output/_10
        cond/then/_0/dbl/y Const ^Func/cond/then/_0/input_control_node/_8/ctrl_R0
        cond/then/_0/dbl_0 Mul Func/cond/then/_0/input/_9/_S1 cond/then/_0/dbl/y";
    let numbered = |text: &str| {
        let cut = |line: &String| line.replace(|c: char| c.is_ascii_digit(), "");
        let mut lines: Vec<String> = sorted(text).iter().map(cut).collect();
        lines.sort();
        lines
    };
    assert_eq!(numbered(&lines(&parts[1]).join("\n")), numbered(expected));
}

#[test]
fn a_while_becomes_a_frame() {
    check(
        "i Const
         x Const
         L While i x T=float,float cond=c body=b _lower_using_switch_merge=true
         L/Identity Identity L:1
         fn c(a: float, b: float) -> less: bool
           Less/y Const
           Less Less a Less/y:output:0
           ret less Less:z:0
         end
         fn b(a: float, b: float) -> add: float, dbl: float
           dbl_0 Mul b b @/job:worker/task:1
           add/y Const
           add_0 Add a add/y:output:0
           ret add add_0:z:0
           ret dbl dbl_0:z:0
         end",
        "i Const
         x Const
         L/enter/_2 Enter i
         L/enter/_3 Enter x
         L/merge/_4 Merge L/enter/_2 L/next_iteration/_13
         L/merge/_5 Merge L/enter/_3 L/next_iteration/_14
         L/LoopCond/_6 LoopCond Func/L/cond/_0/output/_18
         L/i_switch/_7 Switch L/merge/_4 L/LoopCond/_6
         L/x_switch/_8 Switch L/merge/_5 L/LoopCond/_6
         L/loop_body_control/_9 Identity L/i_switch/_7:1
         L/exit/_10 Exit L/i_switch/_7
         L/exit/_11 Exit L/x_switch/_8
         L/LoopExecuted/_12 NoOp ^L/exit/_10 ^L/exit/_11
         L IdentityN L/exit/_10 L/exit/_11
         L/Identity Identity L/exit/_11
         L/next_iteration/_13 NextIteration Func/L/body/_1/output/_23 ^Func/L/body/_1/output_control_node/_25
         L/next_iteration/_14 NextIteration Func/L/body/_1/output/_24 ^Func/L/body/_1/output_control_node/_25
         Func/L/cond/_0/input_control_node/_15 NoOp ^L/merge/_4
         Func/L/cond/_0/input/_16 Identity L/merge/_4 ^Func/L/cond/_0/input_control_node/_15
         Func/L/cond/_0/input/_17 Identity L/merge/_5 ^Func/L/cond/_0/input_control_node/_15
         L/cond/_0/Less/y Const ^Func/L/cond/_0/input_control_node/_15
         L/cond/_0/Less Less Func/L/cond/_0/input/_16 L/cond/_0/Less/y
         Func/L/cond/_0/output/_18 Identity L/cond/_0/Less
         Func/L/cond/_0/output_control_node/_19 NoOp ^Func/L/cond/_0/input_control_node/_15
         Func/L/body/_1/input_control_node/_20 NoOp ^L/loop_body_control/_9
         Func/L/body/_1/input/_21 Identity L/i_switch/_7:1 ^Func/L/body/_1/input_control_node/_20
         Func/L/body/_1/input/_22 Identity L/x_switch/_8:1 ^Func/L/body/_1/input_control_node/_20
         L/body/_1/dbl_0 Mul Func/L/body/_1/input/_22 Func/L/body/_1/input/_22
         L/body/_1/add/y Const ^Func/L/body/_1/input_control_node/_20
         L/body/_1/add_0 Add Func/L/body/_1/input/_21 L/body/_1/add/y
         Func/L/body/_1/output/_23 Identity L/body/_1/add_0
         Func/L/body/_1/output/_24 Identity L/body/_1/dbl_0
         Func/L/body/_1/output_control_node/_25 NoOp ^Func/L/body/_1/input_control_node/_20",
    );
}

#[test]
fn a_case_switches_between_its_branches() {
    check(
        "k Placeholder dtype=int32
         x Const
         sc Case k x Tin=float Tout=float branches=far,near _lower_using_switch_merge=true
         fn far(a: float) -> out: float
           dbl Mul a a @/job:worker/task:1
           ret out dbl:z:0
         end
         fn near(a: float) -> out: float
           ret out a
         end",
        "k Placeholder
         x Const
         sc/branch_index/_2 _SwitchN k k
         sc/pivot_0/_3 Identity sc/branch_index/_2
         sc/pivot_1/_4 Identity sc/branch_index/_2:1
         sc/x/_5 _SwitchN x k
         sc/merge/_6 Merge Func/sc/branch0/_0/output/_10 Func/sc/branch1/_1/output/_14
         sc/branch_executed/_7 Merge sc/pivot_0/_3 sc/pivot_1/_4 ^Func/sc/branch0/_0/output_control_node/_11 \
           ^Func/sc/branch1/_1/output_control_node/_15
         sc IdentityN sc/merge/_6 ^sc/branch_executed/_7
         Func/sc/branch0/_0/input_control_node/_8 NoOp ^sc/pivot_0/_3
         Func/sc/branch0/_0/input/_9 Identity sc/x/_5 ^Func/sc/branch0/_0/input_control_node/_8
         sc/branch0/_0/dbl Mul Func/sc/branch0/_0/input/_9 Func/sc/branch0/_0/input/_9
         Func/sc/branch0/_0/output/_10 Identity sc/branch0/_0/dbl
         Func/sc/branch0/_0/output_control_node/_11 NoOp ^Func/sc/branch0/_0/input_control_node/_8
         Func/sc/branch1/_1/input_control_node/_12 NoOp ^sc/pivot_1/_4
         Func/sc/branch1/_1/input/_13 Identity sc/x/_5:1 ^Func/sc/branch1/_1/input_control_node/_12
         Func/sc/branch1/_1/output/_14 Identity Func/sc/branch1/_1/input/_13
         Func/sc/branch1/_1/output_control_node/_15 NoOp ^Func/sc/branch1/_1/input_control_node/_12",
    );
}

#[test]
fn side_effects_of_a_call_run_between_its_control_inputs_and_its_readers() {
    check(
        "x Const
         before NoOp
         call StatefulPartitionedCall x ^before Tin=float Tout=float f=f
         after NoOp ^call
         fn f(a: float) -> out: float
           effect Act @/job:worker/task:1
           unused Act
           sum Add a a
           ret out sum:z:0
           control effect
         end",
        "x Const
         before NoOp
         Func/call/input_control_node/_0 NoOp ^before
         Func/call/input/_1 Identity x ^Func/call/input_control_node/_0
         call/effect Act ^Func/call/input_control_node/_0
         call/unused Act ^Func/call/input_control_node/_0
         call/sum Add Func/call/input/_1 Func/call/input/_1
         Func/call/output/_2 Identity call/sum
         Func/call/output_control_node/_3 NoOp ^call/effect
         call IdentityN Func/call/output/_2 ^Func/call/output_control_node/_3
         after NoOp ^Func/call/output_control_node/_3",
    );
}

/// The bodies name no device, but the variable they update is on another task.
#[test]
fn a_conditional_goes_to_the_variables_it_changes() {
    let text = "
        v VarHandleOp @/job:worker/task:1
        p Placeholder dtype=bool
        cond If p v Tin=resource Tout= then_branch=set else_branch=leave _lower_using_switch_merge=true
        fn set(v: resource)
          one Const
          assign AssignVariableOp v one:output:0
          control assign
        end
        fn leave(v: resource)
        end";
    let graph = lowered(text).unwrap();
    let devices = devices(&["worker:0", "worker:1"]);
    let placement = place(&graph, &devices, &[], false).unwrap();
    let on = |name: &str| placement[graph.find(name).unwrap() as usize];
    assert_eq!((on("cond/v/_5"), on("cond/then/_0/assign"), on("cond/then/_0/one")), (1, 1, 1));
    assert_eq!((on("cond"), graph.node(graph.find("cond").unwrap()).def.op.as_str()), (0, "NoOp"));
    check_stays(&text.replace("@/job:worker/task:1", "@/job:worker/task:0"));
}

#[test]
fn functions_on_one_task_are_not_lowered() {
    check_stays(&IF.replace("task:1", "task:0"));
    check_stays(&IF.replace("@/job:worker/task:1", "").replace("cond StatelessIf", "cond StatelessIf @/job:ps/task:3"));
    check_stays(&IF.replace("_lower_using_switch_merge=true", ""));
    let conditionals = LowerOptions { conditionals: true, ..options() };
    assert!(lower(&graph(&IF.replace("task:1", "task:0")), &ops(), &conditionals).unwrap().is_some());
}

#[test]
fn a_function_that_asks_for_it_stays_a_call() {
    check(
        "p Placeholder dtype=bool
         cond If p Tin= Tout= then_branch=far else_branch=near _lower_using_switch_merge=true
         fn far()
           effect Act @/job:worker/task:1
           control effect
         end
         fn near(); _noinline
           effect Act
         end",
        "p Placeholder
         cond/switch_pred/_2 Switch p p
         cond/pivot_f/_3 Identity cond/switch_pred/_2
         cond/pivot_t/_4 Identity cond/switch_pred/_2:1
         cond/branch_executed/_5 Merge cond/pivot_t/_4 cond/pivot_f/_3 ^Func/cond/then/_0/output_control_node/_7 \
           ^cond/else/_1
         cond NoOp ^cond/branch_executed/_5
         cond/else/_1 near ^cond/pivot_f/_3
         Func/cond/then/_0/input_control_node/_6 NoOp ^cond/pivot_t/_4
         cond/then/_0/effect Act ^Func/cond/then/_0/input_control_node/_6
         Func/cond/then/_0/output_control_node/_7 NoOp ^cond/then/_0/effect",
    );
}

#[test]
fn a_function_that_calls_itself_ends() {
    let text = "
        p Placeholder dtype=bool
        call PartitionedCall p Tin=bool Tout=bool f=again
        fn again(p: bool) -> out: bool
          far Identity p T=bool @/job:worker/task:1
          inner PartitionedCall far:output:0 Tin=bool Tout=bool f=again
          ret out inner:output:0
        end";
    check_stays(text);
}

#[test]
fn bodies_in_bodies_are_found_and_lowered() {
    let text = "
        x Const
        outer PartitionedCall x Tin=float Tout=float f=f
        y Identity outer
        fn f(a: float) -> out: float
          inner PartitionedCall a Tin=float Tout=float f=g
          ret out inner:output:0
        end
        fn g(a: float) -> out: float
          n Neg a @/job:worker/task:1 _class=loc:@a
          ret out n:y:0
        end";
    check(
        text,
        "x Const
         Func/outer/input/_0 Identity x
         Func/outer/output/_1 Identity Func/outer/inner/output/_4
         Func/outer/output_control_node/_2 NoOp
         outer IdentityN Func/outer/output/_1 ^Func/outer/output_control_node/_2
         Func/outer/inner/input/_3 Identity Func/outer/input/_0
         outer/inner/n Neg Func/outer/inner/input/_3
         Func/outer/inner/output/_4 Identity outer/inner/n
         Func/outer/inner/output_control_node/_5 NoOp
         outer/inner IdentityN Func/outer/inner/output/_4 ^Func/outer/inner/output_control_node/_5
         y Identity Func/outer/output/_1",
    );
    let graph = lowered(text).unwrap();
    let n = &graph.node(graph.find("outer/inner/n").unwrap()).def;
    assert!(format!("{:?}", n.attrs["_class"]).contains("loc:@Func/outer/inner/input/_3"));
}

#[test]
fn nodes_keep_their_numbers() {
    let (before, after) = (graph(IF), lowered(IF).unwrap());
    for (id, node) in before.nodes.iter().enumerate() {
        assert_eq!(after.find(&node.def.name), Some(id as u32));
    }
}
