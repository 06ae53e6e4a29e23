// Goes once to each address that the server names.

export default function ({ data }) {
  if (!data.href || window.ettWent === data.number) return;
  window.ettWent = data.number;
  go(data.href);
}
