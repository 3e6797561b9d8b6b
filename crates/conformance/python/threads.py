"""Calls at the same time."""
import threading


def together(*calls, seconds=None):
    """Runs calls at the same time; the first error is raised. One that takes longer than `seconds` is an error too."""
    errors = []

    def guarded(call):
        try:
            call()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds)
        if thread.is_alive():
            raise TimeoutError(f"a call takes longer than {seconds} s")
    if errors:
        raise errors[0]
