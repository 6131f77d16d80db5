// Notifications of the browser, for whoever looks elsewhere: only after the user has allowed them, by a command of ours
// and in the browser's own question.

export function makeBrowserNotices({ isWanted, remember, say, words }) {
  let wanted = isWanted;
  const isAllowed = () => window.Notification?.permission === "granted";

  async function allow() {
    if (!window.Notification) return say(words.__("This browser has no notifications"), "warning");
    wanted = (await window.Notification.requestPermission()) === "granted";
    if (!wanted) return say(words.__("The browser blocks notifications from this page; you can allow them in its settings for this page"), "warning");
    await remember(true);
    return say(words.__("While you look elsewhere, the browser notifies you of new questions and failed runs"), "info");
  }

  // One for the same matter, however many tabs tell of it.
  function tell(text, tag, onClick) {
    if (!wanted || !isAllowed() || document.hasFocus()) return;
    const notice = new window.Notification(words.__("Attractor"), { body: text, tag: `attractor-nb ${tag}` });
    notice.addEventListener("click", () => {
      window.focus();
      onClick();
      notice.close();
    });
  }

  return { allow, tell, isOn: () => wanted && isAllowed() };
}
