//! Stories of hosted apps, told by the real binary: on the embedded cluster, and on a real kube-apiserver when there is one.
//!
//! Each story changes what the gateway wants or what becomes of pods, waits for what must come of it, and reads the log back.

mod daemon;
mod failures;
mod golden;
mod losses;
mod openapi;
mod revivals;
mod rights;
mod rollouts;
mod sessions;
mod stage;
mod wants;

use stage::Stage;

/// Tells a story on both clusters: two tests of one function.
macro_rules! stories {
    ($($file:ident::$story:ident as $name:ident;)*) => {
        mod embedded {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let stage = super::Stage::embedded(stringify!($name)).await;
                super::$file::$story(stage).await;
            })*
        }

        mod real {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                if let Some(stage) = super::Stage::real(stringify!($name)).await {
                    super::$file::$story(stage).await;
                }
            })*
        }
    };
}

stories! {
    rollouts::goes_live as a_first_release_goes_live;
    rollouts::replaces as a_second_release_replaces_the_first_only_when_the_gateway_names_it;
    rollouts::changed_secret as a_changed_secret_makes_a_new_host;
    rollouts::killed as a_daemon_killed_in_a_rollout_goes_on_with_it;
    failures::exits as a_release_that_exits_is_failed_with_its_last_lines;
    failures::never_registers as a_release_that_never_registers_is_failed;
    failures::install_fails as a_release_whose_install_fails_is_failed;
    failures::keeps_exiting as five_own_exits_are_revived_and_the_sixth_fails;
    revivals::evicted as evictions_and_deletions_are_revived_and_not_counted;
    revivals::former as the_former_live_host_is_revived_while_the_package_source_is_down;
    revivals::killed as a_daemon_killed_in_a_revive_goes_on_with_it;
    wants::withdrawn as a_withdrawn_app_stops_after_two_answers;
    wants::odd as no_app_stops_for_one_odd_answer;
    losses::lost_tail as a_lost_tail_is_named_and_no_pod_is_removed;
    losses::set_aside as b56_a_store_that_does_not_open_is_set_aside_and_no_pod_is_removed;
    losses::no_secret_is_kept as what_an_app_prints_of_its_environment_is_nowhere_in_the_data_folder;
    golden::told as the_log_tells_the_story_as_listed;
}
